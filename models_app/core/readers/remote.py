"""Headers of files that have not been downloaded: which files share one, and which ranges to ask for (headers.md 14).

Pure: the requests themselves are sent by a function that the caller hands in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Protocol
from urllib.parse import quote, urljoin, urlsplit

from models_app.core.catalog import Header
from models_app.core.errors import QuartermasterError, TruncatedHeader
from models_app.core.readers.gguf import read_gguf
from models_app.core.readers.limits import MAX_REMOTE_HEADER_BYTES
from models_app.core.units import MIB, pad

PREFIX_ENDS = (8 * MIB, 24 * MIB, MAX_REMOTE_HEADER_BYTES)
"""Most headers end within the first step; the tokenizer dominates."""
KEPT_SECONDS = 30 * 60
"""How long a shared header is good for. Failures are not kept."""
MAX_REDIRECTS = 10
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


class RangeRefused(QuartermasterError):
    """A request that is not sent, or an answer that is not taken."""


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """`length` bytes at `offset` of the file `path` in the repository `repo` (owner/name)."""

    repo: str
    path: str
    offset: int
    length: int

    def check(self) -> None:
        """Refuse before anything is sent. Raises RangeRefused."""
        if self.offset < 0 or self.length <= 0:
            raise RangeRefused("a range starts at 0 or later and holds at least one byte")
        if self.offset + self.length > MAX_REMOTE_HEADER_BYTES:
            raise RangeRefused("a header is never looked for beyond the first 64 MiB of a file")
        if not _REPO.fullmatch(self.repo) or ".." in self.repo:
            raise RangeRefused("a repository is named owner/name")
        parts = self.path.split("/")
        if _CONTROL.search(self.path) or any(part in ("", ".", "..") for part in parts):
            raise RangeRefused("not a path inside a repository")

    @property
    def headers(self) -> dict[str, str]:
        """What the request must say."""
        return {"Range": f"bytes={self.offset}-{self.offset + self.length - 1}"}


class Answer(Protocol):
    """One HTTP answer, not followed: `location` is the target of a redirect, "" otherwise."""

    @property
    def status(self) -> int: ...
    @property
    def location(self) -> str: ...
    @property
    def body(self) -> Iterable[bytes]: ...


Send = Callable[[str, Mapping[str, str]], Answer]


def fetch_range(request: RangeRequest, send: Send, *, base_url: str, allowed_hosts: Iterable[str]) -> bytes:
    """The bytes of one range; fewer where the file ends. Raises RangeRefused.

    The host of the first address and of every redirect must be one of `allowed_hosts` or below one of them.
    """
    request.check()
    hosts = tuple(allowed_hosts)
    url = f"{base_url}/{request.repo}/resolve/main/{quote(request.path)}"
    for _ in range(MAX_REDIRECTS + 1):
        _check_host(url, hosts)
        answer = send(url, request.headers)
        if not 300 <= answer.status < 400:
            return take_body(answer.status, answer.body, request)
        url = urljoin(url, answer.location)
    raise RangeRefused(f"more than {MAX_REDIRECTS} redirects")


def take_body(status: int, chunks: Iterable[bytes], request: RangeRequest) -> bytes:
    """The wanted bytes of an answer. 206 is the range itself; 200 is the whole file, because the server ignored it."""
    if status not in (200, 206):
        raise RangeRefused(f"the server answered {status}")
    to_drop = request.offset if status == 200 else 0
    taken = bytearray()
    for chunk in chunks:
        taken += chunk[to_drop : to_drop + request.length - len(taken)]
        to_drop = max(to_drop - len(chunk), 0)
        if len(taken) == request.length:
            break
    return bytes(taken)


def walk_header(
    fetch: Callable[[int, int], bytes],
    file_size_bytes: int,
    parse: Callable[[BytesIO, int], Header] = read_gguf,
) -> Header:
    """Read a header through longer and longer prefixes; `fetch(offset, length)` is asked only for the bytes added.

    Raises the HeaderError of the last attempt: any error but `truncated` at once, because more bytes would not help.
    """
    prefix = BytesIO()
    end, steps = 0, list(PREFIX_ENDS)
    while True:
        step = steps.pop(0)
        part = fetch(end, step - end)
        prefix.seek(end)
        prefix.write(part[: step - end])
        is_whole_file = len(part) < step - end
        end = step
        try:
            return parse(prefix, file_size_bytes)
        except TruncatedHeader as error:
            if is_whole_file or not steps or error.need > MAX_REMOTE_HEADER_BYTES:
                raise
            steps = _next_steps(steps, error.need)


def share_key(file_name: str, quant: str) -> str:
    """Files with the same key are quants of one model and share its header; "" shares with nobody.

    `quant` is the quant token of the name ("" for none); a recipe marker before it (`UD`, `i1`) goes with it.
    """
    name = file_name.upper()
    if not quant:
        return ""
    token = re.search(rf"(?<=[-_. ])(?:(?:UD|I1)-)?{re.escape(quant.upper())}(?=[-_. ])", name)
    if token is None:
        return ""
    return "|".join(part.strip("-_.") for part in (name[: token.start()], name[token.end() :]))


def stamp_size(header: Header, group_file_bytes: Iterable[int]) -> Header:
    """A copy of a shared record with the size of one caller's own files: all shards of its group, never a prefix."""
    return replace(header, file_size_bytes=sum(group_file_bytes))


def _next_steps(steps: list[int], need: int) -> list[int]:
    """The steps ahead; a known need beyond the next one is asked for at once, in whole mebibytes."""
    if need <= steps[0]:
        return steps
    wanted = min(pad(need, MIB), MAX_REMOTE_HEADER_BYTES)
    return [wanted, *(step for step in steps if step > wanted)]


def _check_host(url: str, allowed_hosts: tuple[str, ...]) -> None:
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme != "https" or not any(host == allowed or host.endswith(f".{allowed}") for allowed in allowed_hosts):
        raise RangeRefused(f"{host or 'no host'} is not a place to read models from")
