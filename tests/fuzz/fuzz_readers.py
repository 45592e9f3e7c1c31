"""Coverage-guided fuzzing of one header reader with atheris, outside CI. See README.md in this folder.

A reader may answer or raise HeaderError. A find is anything else, an answer after 2 s, or a process above 200 MB.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["models_app"]):
    from models_app.core.errors import HeaderError
    from models_app.core.readers import read_header, remote
    from models_app.core.readers.gguf import read_gguf
    from models_app.core.readers.record import header_from_json, header_to_json
    from models_app.core.readers.safetensors import read_safetensors

from tests.fuzz.seeds import SEEDS

MAX_INPUT_BYTES = 1 << 16
MAX_RESIDENT_MB = 200
PREFIX_ENDS = (64, 512, 4096)
"""Of remote headers: as short as fuzzed files are, so that every step is taken."""
FOLDER = Path(tempfile.mkdtemp(prefix="qm-fuzz-"))


def gguf(data: bytes) -> None:
    _judge(lambda: read_gguf(io.BytesIO(data), len(data)))


def safetensors(data: bytes) -> None:
    _judge(lambda: read_safetensors(io.BytesIO(data), len(data)))


def hugging_face(data: bytes) -> None:
    (FOLDER / "config.json").write_bytes(data)
    _judge(lambda: read_header(str(FOLDER)))


def ranges(data: bytes) -> None:
    """A header behind ranges: a quarter of the first eight bytes is the full size, the rest is what the server has."""
    size_bytes, body = int.from_bytes(data[:8].ljust(8, b"\0"), "little") >> 2, data[8:]
    remote.PREFIX_ENDS = PREFIX_ENDS

    def fetch(offset: int, length: int) -> bytes:
        request = remote.RangeRequest("owner/name", "model.gguf", offset, length)
        request.check()
        return remote.take_body(206, (body[offset : offset + 100], body[offset + 100 :]), request)

    _judge(lambda: remote.walk_header(fetch, size_bytes))
    if size_bytes >= len(body):
        at_once = _outcome(lambda: read_gguf(io.BytesIO(body), size_bytes))
        assert _outcome(lambda: remote.walk_header(fetch, size_bytes)) == at_once


def _outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except HeaderError as error:
        return error.code


def _judge(read: Callable[[], object]) -> None:
    """Whatever is answered must survive the way to the control side."""
    try:
        header = read()
    except HeaderError:
        return
    assert header_from_json(json.loads(json.dumps(header_to_json(header)))) == header


TARGETS = {"gguf": gguf, "safetensors": safetensors, "hugging_face": hugging_face, "remote": ranges}


def main() -> None:
    name, corpus, *options = sys.argv[1:]
    folder = Path(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]()):
        (folder / f"seed-{number}").write_bytes(seed)
    if name == "hugging_face":
        (FOLDER / "model.safetensors").write_bytes(next(iter(SEEDS["safetensors"]())))
    limits = ["-timeout=2", f"-rss_limit_mb={MAX_RESIDENT_MB}", f"-max_len={MAX_INPUT_BYTES}"]
    limits += [f"-artifact_prefix={corpus}-found-", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *options, corpus], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
