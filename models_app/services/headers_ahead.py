"""Headers of a whole host for its planning: read in batches, in the order in which models are planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from gpus_app.models import Host
from models_app import convert
from models_app.core.catalog import Header, Row

AT_ONCE = 100
"""Models whose headers are in memory together; those of ten thousand would be hundreds of megabytes."""


class HeadersAhead:
    """Path -> header, None where there is none. Whoever asks in the order of `rows` waits for few queries."""

    def __init__(self, host: Host, rows: Sequence[Row]) -> None:
        self._host, self._rows = host, rows
        self._places = {row.full_path: place for place, row in enumerate(rows)}
        self._batches: list[Mapping[str, Header | None]] = []
        """The last two: a companion may lie a little further on."""

    @cached_property
    def _others(self) -> Callable[[str], Header | None]:
        return convert.header_lookup(self._host)

    def __call__(self, path: str) -> Header | None:
        for batch in self._batches:
            if path in batch:
                return batch[path]
        place = self._places.get(path)
        if place is None:
            return self._others(path)  # such as a projector that somebody pinned
        self._batches = [self._batch(place // AT_ONCE * AT_ONCE), *self._batches[:1]]
        return self._batches[0][path]

    def _batch(self, start: int) -> Mapping[str, Header | None]:
        """The headers of some rows, and of what lies beside them and decides their plans."""
        rows = self._rows[start : start + AT_ONCE]
        paths = {path for row in rows for path in (row.full_path, row.mmproj_path, row.codec_path) if path}
        lookup = convert.headers_at_once(self._host, paths)
        return {path: lookup(path) for path in paths}
