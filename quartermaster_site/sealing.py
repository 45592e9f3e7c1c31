"""Secrets at rest: encrypted with a key that lies in the data folder, beside the database and not in it.

A copy of the database alone tells nothing. Whoever loses the key file loses the secrets: they are made anew then. Where
several machines serve the pages, all are given the same key (`QM_SEALING_KEY`).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from gpus_app.core.errors import QuartermasterError
from quartermaster_site import env

FILE_NAME = "sealing-key"


class Unsealable(QuartermasterError):
    """A secret that cannot be read any more."""

    advice = "Restore the file sealing-key of the data folder, or make the key anew."


def seal(text: str) -> str:
    """The text encrypted, as ASCII."""
    return _box().encrypt(text.encode()).decode("ascii")


def unseal(sealed: str) -> str:
    """The text again. Raises Unsealable."""
    try:
        return _box().decrypt(sealed.encode("ascii", "replace")).decode()
    except InvalidToken as error:
        raise Unsealable(f"A stored secret cannot be read: {FILE_NAME} in the data folder is another one.") from error


def _box() -> Fernet:
    given = env.sealing_key().encode()
    path = env.prepared_data_dir() / FILE_NAME
    try:
        return Fernet(given or _key(path))
    except ValueError as error:
        where = "QM_SEALING_KEY" if given else str(path)
        raise Unsealable(f"{where} is no key: it must be 32 bytes in base64 (44 characters).") from error


def _key(path: Path) -> bytes:
    """The key of this installation, made at first use. Raises Unsealable.

    A new one is linked to its place whole, so that of several processes the first wins and none reads half a key.
    """
    try:
        return path.read_bytes().strip()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unsealable(f"{path} cannot be read: {error.strerror}.") from error
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=FILE_NAME) as fresh:  # mode 0600
            fresh.write(Fernet.generate_key())
            fresh.flush()
            os.fsync(fresh.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(fresh.name, path)
        return path.read_bytes().strip()
    except OSError as error:
        raise Unsealable(f"{path} cannot be written: {error.strerror}.") from error
