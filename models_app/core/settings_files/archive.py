"""Several texts as one archive, and back: the same texts give the same bytes, on every machine and at any time."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Mapping

from models_app.core.errors import ExportError

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that the format knows."""
_UNIX = 3
_SIGNATURE = b"PK\x03\x04"
MOST_ENTRIES = 10_000
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Ways to pack that are unpacked piece by piece. Of the others a piece can be as large as its maker likes."""
_MODE = 0o100600


def zip_of(texts: Mapping[str, str]) -> bytes:
    """A zip file of these names and texts, in their order. Stored, because compressors differ."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, text in texts.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr = _UNIX, _MODE << 16
            archive.writestr(entry, text.encode("utf-8"))
    return stream.getvalue()


def is_zip(data: bytes) -> bool:
    return data[:4] == _SIGNATURE


def texts_of_zip(data: bytes, names: Collection[str], most_bytes: int) -> dict[str, bytes]:
    """The files of these names, in whatever folder they lie; nothing else is unpacked.

    Raises `ExportError` for what is no archive, a name that is there twice, and a file that unpacks to more than
    `most_bytes`.
    """
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_ENTRIES:
                raise ExportError(f"The archive has {len(entries):,} files; at most {MOST_ENTRIES:,} are looked at.")
            for entry in entries:
                name = entry.filename.replace("\\", "/").rpartition("/")[2]
                if name not in names:
                    continue
                if name in found:
                    raise ExportError(f"The archive has {name} twice.")
                if entry.compress_type not in _BOUNDED:
                    raise ExportError(f"{name} is packed in a way that is not unpacked here: use plain zip.")
                with archive.open(entry) as stream:
                    # The size that an entry claims is not to be trusted.
                    found[name] = stream.read(most_bytes + 1)
                if len(found[name]) > most_bytes:
                    raise ExportError(f"{name} unpacks to more than {most_bytes:,} bytes.")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise ExportError(f"The archive cannot be read: {error}") from error
    return found
