"""Header errors as JSON, beside `record`: what a cache remembers of a broken file, and what a host reports of it."""

from __future__ import annotations

from typing import Any

from models_app.core.errors import (
    HeaderError,
    MalformedHeader,
    NotThisFormat,
    RecordError,
    SourceUnreadable,
    TruncatedHeader,
    UnsupportedVersion,
)
from models_app.core.readers import _validate as check

_ERRORS: dict[str, type[HeaderError]] = {
    kind.__name__: kind for kind in (SourceUnreadable, NotThisFormat, UnsupportedVersion, MalformedHeader)
}


def error_to_json(error: HeaderError) -> dict[str, Any]:
    """A header error as a record, without the partial header of a truncated one."""
    record: dict[str, Any] = {
        "kind": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "offset": error.offset,
        "path": error.path,
    }
    if error.hint:
        record["hint"] = error.hint
    if error.version is not None:
        record["version"] = error.version
    if isinstance(error, TruncatedHeader):
        record |= {"need": error.need, "retryable": error.retryable}
    return record


def error_from_json(record: object) -> HeaderError:
    """The error of a record. Raises RecordError."""
    source = check.mapping(record, "error", 16)
    texts = {name: check.text(source.get(name, ""), name) for name in ("kind", "code", "message", "path", "hint")}
    offset = check.integer(source.get("offset", 0), "offset")
    if texts["kind"] == TruncatedHeader.__name__:
        return TruncatedHeader(
            texts["message"],
            offset=offset,
            need=check.integer(source.get("need"), "need"),
            retryable=check.flag(source.get("retryable"), "retryable"),
            path=texts["path"],
        )
    kind = _ERRORS.get(texts["kind"])
    if kind is None:
        raise RecordError("unknown kind of error")
    version = source.get("version")
    return kind(
        texts["code"],
        texts["message"],
        offset=offset,
        path=texts["path"],
        hint=texts["hint"],
        version=None if version is None else check.integer(version, "version"),
    )
