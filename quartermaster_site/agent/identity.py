"""Who this machine is to the server: kept in the data folder of its agent, for its owner alone. Imports no Django."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from quartermaster_site import env

FOLDER = "agent"
_FILE = "identity.json"
_CA_FILE = "broker-ca.pem"


@dataclass(frozen=True, slots=True)
class Identity:
    """What the enrolment gave, and the key that never leaves this machine."""

    server: str
    slug: str
    enrolment: str
    private_key: str
    """Ed25519, in base64."""
    broker_url: str
    broker_ca: str = ""
    """The certificates that the broker is checked against, as PEM; the system's when empty."""
    server_ca: str = ""
    """The path of the certificates that the server's HTTPS is checked against; the system's when empty."""

    def sign(self, text: bytes) -> str:
        """The signature of a text, in base64."""
        key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(self.private_key))
        return base64.b64encode(key.sign(text)).decode("ascii")


def new_key() -> tuple[str, str]:
    """A fresh private key and its public one, both in base64."""
    key = Ed25519PrivateKey.generate()
    pair = (key.private_bytes_raw(), key.public_key().public_bytes_raw())
    private, public = (base64.b64encode(part).decode("ascii") for part in pair)
    return private, public


def is_key(public_key: str) -> bool:
    """Whether this is a public key in base64."""
    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
    except ValueError:
        return False
    return True


def is_signed(public_key: str, signature: str, text: bytes) -> bool:
    """Whether the owner of the key has signed this text."""
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def folder() -> Path:
    """Where the agent keeps what it knows, made when it is not there."""
    path = env.prepared_data_dir() / FOLDER
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def store(identity: Identity) -> Path:
    """Keep it (mode 0600), in the place of an earlier one; returns where."""
    here = folder()
    _write(here / _CA_FILE, identity.broker_ca)
    path = here / _FILE
    _write(path, json.dumps(asdict(identity), indent=1) + "\n")
    current.cache_clear()
    return path


def _write(path: Path, text: str) -> None:
    """Whole or not at all; a temporary file is for its owner alone."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, path)


def load() -> Identity | None:
    """The kept identity; None before the enrolment. Raises ConfigurationError for a damaged one."""
    path = env.data_dir() / FOLDER / _FILE
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        names = {field.name for field in fields(Identity)}
        return Identity(**{name: str(value) for name, value in facts.items() if name in names})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise env.ConfigurationError(
            f"{path} cannot be used ({error}): enrol this machine again with --code."
        ) from error


@lru_cache(maxsize=1)
def current() -> Identity | None:
    """The same, read once by a worker."""
    return load()


def ca_path() -> Path:
    """Where the broker's certificates lie for its client."""
    return env.data_dir() / FOLDER / _CA_FILE
