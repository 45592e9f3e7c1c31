"""Several texts as one archive: the same texts give the same bytes, on every machine and at any time."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that the format knows."""
_UNIX = 3
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
