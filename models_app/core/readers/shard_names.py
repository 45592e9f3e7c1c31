"""Which files on disk are one model: the parts of a split set, by their names."""

from __future__ import annotations

import os
import re

from models_app.core.readers import limits

_SHARD = re.compile(r"(.*)-([0-9]{5})-of-([0-9]{5})(\.gguf)", re.ASCII | re.IGNORECASE | re.DOTALL)


def shard_siblings(path: str) -> tuple[str, ...]:
    """The shards on disk of the set that `path` belongs to, itself among them, in order; () when it is no shard."""
    folder, name = os.path.split(path)
    match = _SHARD.fullmatch(name)
    if match is None or not 1 < int(match[3]) <= limits.MAX_SHARDS:
        return ()
    own, count = int(match[2]), int(match[3])
    numbered = {
        number: os.path.join(folder, f"{match[1]}-{number:05d}-of-{count:05d}{match[4]}")
        for number in range(1, count + 1)
    }
    return tuple(candidate for number, candidate in numbered.items() if number == own or os.path.exists(candidate))
