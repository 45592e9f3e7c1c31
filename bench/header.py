"""One header with a large tokenizer (headers.md 16): our reader against a minimal struct skip loop, in the same run.

    python -m bench.header [--quick] [--oracle]

The file is sparse: 5.3 GB long, a few megabytes on disk. `--oracle` times `gguf.GGUFReader` as well, once; that takes
some ten seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOKENS, MERGES, TENSORS = 151_936, 151_387, 400
FILE_BYTES = 5_300_000_000
ROUNDS, QUICK_ROUNDS = 7, 3
SKIP_LOOP, ORACLE = "minimal skip loop", "gguf.GGUFReader"
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def synthetic_header() -> bytes:
    """26 keys, tokens of 6.3 bytes on average, f32 scores, i32 token types, merges, 400 tensor infos."""
    rng = random.Random(7)

    def text(raw: bytes) -> bytes:
        return struct.pack("<Q", len(raw)) + raw

    def strings(count: int, shortest: int, longest: int) -> bytes:
        return b"".join(
            text(bytes(rng.randint(97, 122) for _ in range(rng.randint(shortest, longest)))) for _ in range(count)
        )

    pairs = [text(b"general.architecture") + struct.pack("<I", 8) + text(b"qwen3")]
    pairs += [text(b"qwen3.%s" % key) + struct.pack("<II", 4, value) for key, value in _NUMBERS.items()]
    pairs += [text(b"qwen3.filler_%d" % index) + struct.pack("<If", 6, 1.0) for index in range(21 - len(_NUMBERS))]
    pairs.append(text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, TOKENS) + strings(TOKENS, 3, 10))
    pairs.append(text(b"tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, TOKENS) + bytes(4 * TOKENS))
    pairs.append(text(b"tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, TOKENS) + bytes(4 * TOKENS))
    pairs.append(text(b"tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, MERGES) + strings(MERGES, 5, 15))
    infos, offset = [], 0
    for index in range(TENSORS):
        name = b"token_embd.weight" if index == 0 else b"blk.%d.%s.weight" % ((index - 1) // 11, _KINDS[index % 11])
        infos.append(text(name) + struct.pack("<IQQIQ", 2, 4096, 4096, 12, offset))
        offset += 4096 * 4096 // 256 * 144
    head = b"GGUF" + struct.pack("<IQQ", 3, TENSORS, len(pairs))
    return head + b"".join(pairs) + b"".join(infos)


_NUMBERS = {
    b"block_count": 36,
    b"context_length": 40960,
    b"embedding_length": 4096,
    b"attention.head_count": 32,
    b"attention.head_count_kv": 8,
    b"attention.key_length": 128,
    b"attention.value_length": 128,
}
_KINDS = (
    b"attn_k",
    b"attn_k_norm",
    b"attn_norm",
    b"attn_output",
    b"attn_q",
    b"attn_q_norm",
    b"attn_v",
    b"ffn_down",
    b"ffn_gate",
    b"ffn_norm",
    b"ffn_up",
)


def skip_loop(path: str, header_bytes: int) -> int:
    """Walk the header and learn nothing: what any reader in this language must at least do. Returns where it ends."""
    u32, u64 = struct.Struct("<I").unpack_from, struct.Struct("<Q").unpack_from
    with open(path, "rb", buffering=0) as stream:
        raw = stream.read(header_bytes)
    tensor_count, key_count = struct.unpack_from("<QQ", raw, 8)
    pos = 24
    for _ in range(key_count):
        pos += 8 + u64(raw, pos)[0]
        kind = u32(raw, pos)[0]
        pos += 4
        if kind == 8:
            pos += 8 + u64(raw, pos)[0]
        elif kind == 9:
            element, count = u32(raw, pos)[0], u64(raw, pos + 4)[0]
            pos += 12
            if element == 8:
                for _ in range(count):
                    pos += 8 + u64(raw, pos)[0]
            else:
                pos += count * _WIDTHS[element]
        else:
            pos += _WIDTHS[kind]
    for _ in range(tensor_count):
        pos += 8 + u64(raw, pos)[0]
        pos += 4 + 8 * u32(raw, pos)[0] + 12
    return pos


def run(quick: bool = False, oracle: bool | None = None) -> list[dict[str, Any]]:
    """Rows {name, value, unit, baseline, ratio, limit}; the oracle runs unless `quick`, or as told."""
    from models_app.core.readers import read_header

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        header = synthetic_header()
        with open(path, "wb") as out:
            out.write(header)
            out.truncate(FILE_BYTES)
        assert skip_loop(path, len(header)) == len(header)
        assert read_header(path).vocab_size == 4096
        ours_ms, loop_ms = _medians(
            QUICK_ROUNDS if quick else ROUNDS, lambda: read_header(path), lambda: skip_loop(path, len(header))
        )
        rows = [_row("read a header with 152k tokens", ours_ms, "ms", SKIP_LOOP, ours_ms / loop_ms, 1.5)]
        if oracle if oracle is not None else not quick:
            oracle_ms = _time_ms(lambda: _oracle(path))
            rows.append(_row("the same header", ours_ms, "ms", ORACLE, ours_ms / oracle_ms, 0.01))
        rows.append(_row("peak memory of inspect", inspect_peak_mib(path), "MiB", None, None, 60))
        return rows


def _medians(rounds: int, ours: Callable[[], object], loop: Callable[[], object]) -> tuple[float, float]:
    """Median milliseconds of both, after one warm-up, taking turns so that both see the same clock."""
    ours()
    loop()
    pairs = [(_time_ms(ours), _time_ms(loop)) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _time_ms(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def _oracle(path: str) -> None:
    from gguf import GGUFReader

    GGUFReader(path)


_PEAK_CODE = """
import re, resource, sys
from models_app.core.cli import main
code = main(sys.argv[1:])
try:  # of this program alone; the other figure counts the parent's memory at the fork as well
    peak_kib = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
except OSError:
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
print(peak_kib, file=sys.stderr)
sys.exit(code)
"""


def inspect_peak_mib(path: str) -> float:
    """Peak resident memory of `inspect --json` in a process of its own, whatever it makes of the file."""
    finished = subprocess.run(
        [sys.executable, "-c", _PEAK_CODE, "inspect", "--json", "--no-cache", path],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parent.parent,
    )
    return int(finished.stderr.split()[-1]) / 1024


def _row(name: str, value: float, unit: str, baseline: str | None, ratio: float | None, limit: float) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio, "limit": limit}


if __name__ == "__main__":
    from bench.__main__ import print_row

    parser = argparse.ArgumentParser(prog="python -m bench.header")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--oracle", action="store_true")
    options = parser.parse_args()
    for result in run(options.quick, options.oracle):
        print_row(result)
