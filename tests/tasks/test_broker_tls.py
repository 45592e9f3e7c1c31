"""A broker behind TLS with a certificate that no system knows: whoever is given it gets in, nobody else."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.cache.backends.redis import RedisCache
from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import OperationalError
from redis import Redis, RedisError

from quartermaster_site import broker_accounts, env, redis_broker
from quartermaster_site.agent import doctor, identity
from quartermaster_site.broker_address import with_ca
from quartermaster_site.jobs import connection
from tests.tasks.brokers import Broker
from tests.tasks.test_up import free_port

pytestmark = pytest.mark.redis


def self_signed(folder):
    """cert.pem, key.pem and ca-cert.pem for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker of a test")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = (
        builder.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    )
    builder = builder.add_extension(address, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    folder.mkdir()
    for name in ("cert", "ca-cert"):
        (folder / f"{name}.pem").write_bytes(pem)
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(private)
    return folder


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """Redis, where it is installed: the Valkey of the tests has no TLS."""
    found = Broker("redis", free_port(), tls_folder=self_signed(tmp_path_factory.mktemp("tls") / "pem"))
    yield found
    found.stop()


@pytest.fixture
def trusted(broker, monkeypatch):
    monkeypatch.setenv("QM_REDIS_URL", broker.url)
    monkeypatch.setenv("QM_REDIS_CA", str(broker.tls_folder / "ca-cert.pem"))
    redis_broker.register()
    connection._redis_problem.cache_clear()
    broker_accounts._why_shared.cache_clear()
    return broker


def test_the_server_gets_in_with_the_certificate(trusted):
    assert connection.broker_problem() == ""
    assert broker_accounts.why_shared() == ""
    cache = RedisCache(env.redis_url(), {"KEY_PREFIX": "qm"})
    cache.set("a", 1)
    assert cache.get("a") == 1


def test_and_not_without_it(trusted, monkeypatch):
    monkeypatch.delenv("QM_REDIS_CA")
    assert "does not answer" in connection.broker_problem()
    with pytest.raises(OperationalError, match="(?i)certificate"):
        Connection(env.redis_url(), transport_options=redis_broker.options("control")).ensure_connection(max_retries=1)


def test_a_machine_gets_the_certificate_with_its_account(trusted, tmp_path, monkeypatch):
    broker_accounts.grant("gpu-a", broker_accounts.password_digest("pw"))
    url = broker_accounts.address_for("gpu-a", "pw")
    assert url.startswith("rediss://qm-host-gpu-a:pw@127.0.0.1:")
    assert "ssl" not in url
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))
    me = {"server": "https://s", "slug": "gpu-a", "enrolment": "e", "private_key": identity.new_key()[0]}
    pem = (trusted.tls_folder / "ca-cert.pem").read_text()
    identity.store(identity.Identity(**me, broker_url=url, broker_ca=pem))
    assert doctor.broker().state == "ok"
    address = with_ca(url, str(identity.ca_path()))
    queue = Queue("host.gpu-a", Exchange("host.gpu-a", type="direct"), routing_key="host.gpu-a")
    got = []
    with Connection(env.redis_url(), transport_options=redis_broker.options("control")) as server:
        Producer(server).publish({"n": 1}, routing_key="host.gpu-a", declare=[queue])
    with (
        Connection(address, transport_options=redis_broker.options("host.gpu-a")) as agent,
        Consumer(agent, queues=[queue], callbacks=[lambda body, message: got.append(body)], accept=["json"]),
    ):
        agent.drain_events(timeout=5)
    assert got == [{"n": 1}]
    with pytest.raises(RedisError), Redis.from_url(url) as blind:
        blind.ping()


def test_a_file_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setenv("QM_REDIS_CA", "/no/such.pem")
    with pytest.raises(env.ConfigurationError, match=r"QM_REDIS_CA: there is no file /no/such\.pem"):
        env.redis_ca()
