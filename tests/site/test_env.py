"""`QM_*` variables: read in one place, refused with a sentence."""

from __future__ import annotations

import stat

import pytest

from quartermaster_site import env
from quartermaster_site.env import ConfigurationError


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in env.VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


def test_a_secret_key_is_made_once_and_kept_private(tmp_path):
    key = env.secret_key()
    assert env.secret_key() == key
    path = tmp_path / "data" / "secret-key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_secret_may_come_from_a_file(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("k" * 40 + "\n")
    monkeypatch.setenv("QM_SECRET_KEY_FILE", str(tmp_path / "key"))
    assert env.secret_key() == "k" * 40


def test_a_damaged_secret_is_not_replaced_silently(tmp_path):
    env.secret_key()
    (tmp_path / "data" / "secret-key").write_text("short")
    with pytest.raises(ConfigurationError, match="damaged"):
        env.secret_key()


@pytest.mark.parametrize(
    ("name", "value", "reader", "message"),
    [
        ("QM_DEBUG", "perhaps", env.debug, "QM_DEBUG is 'perhaps': write 1 or 0"),
        ("QM_ROLE", "boss", env.role, "use one of web, control, host, all"),
        ("QM_HOST_SLUG", "GPU Box", env.host_slug, "lower-case letters, digits and dashes"),
        ("QM_REDIS_URL", "http://x", env.redis_url, "must start with redis://"),
        ("QM_DATABASE_URL", "mysql://x", env.database_url, "must start with postgres://"),
        ("QM_TRUSTED_ORIGINS", "example.org", env.trusted_origins, "must start with http"),
        ("QM_SECRET_KEY", "short", env.secret_key, "at least 32 characters"),
        ("QM_SECRET_KEY_FILE", "/nowhere/at/all", env.secret_key, "cannot read"),
        ("QM_BROWSE_ROOTS", "models", env.browse_roots, "not an absolute path"),
        ("QM_LOG_LEVEL", "LOUD", env.log_level, "use one of DEBUG, INFO"),
    ],
)
def test_wrong_values_are_refused_by_name(monkeypatch, name, value, reader, message):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=message):
        reader()


def test_a_value_and_a_file_for_it_are_too_much(monkeypatch):
    monkeypatch.setenv("QM_REDIS_URL", "redis://x")
    monkeypatch.setenv("QM_REDIS_URL_FILE", "/etc/x")
    with pytest.raises(ConfigurationError, match="not both"):
        env.redis_url()


def test_lists_take_commas_and_blanks(monkeypatch):
    monkeypatch.setenv("QM_ALLOWED_HOSTS", "a.example, b.example c.example")
    assert env.allowed_hosts() == ("a.example", "b.example", "c.example")


def test_a_data_folder_that_cannot_be_made_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigurationError, match="cannot be made"):
        env.prepared_data_dir()


def test_every_variable_that_is_read_is_known():
    source = (env.Path(env.__file__)).read_text()
    import re

    read = set(re.findall(r'"(QM_[A-Z_]+)"', source.partition("READERS =")[0]))
    assert read <= env.VARIABLES
