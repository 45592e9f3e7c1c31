"""llama.cpp's own projections beside ours, and the table in docs/memory-model.md.

There are three tables of them: tests/vectors/llama_truth.json for the models of `zoo`, which came with the project;
tests/data/llama_truth_more.json for those of `more_models`, measured later; tests/data/llama_truth_variants.json for
those of `variants`, drawn from seeds.

python -m tests.truth_table            prints the errors of the first two, then of the third, as Markdown
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from models_app.core.catalog import Header, Launch, MemoryUse
from models_app.core.planning.projection import project
from models_app.core.planning.table import model_table
from models_app.core.readers import read_header
from models_app.core.units import MIB
from tests.zoo import more_models, variants, zoo

Rows = list[dict[str, Any]]


def _rows(path: str) -> Rows:
    rows: Rows = json.loads((Path(__file__).parent / path).read_text())["rows"]
    return rows


def _variant_rows(path: str) -> Rows:
    """Rows of a table that writes figures in the order of its `columns`, to stay small."""
    table = json.loads((Path(__file__).parent / path).read_text())
    rows = []
    for model, *setting, places in table["rows"]:
        *devices, host = (dict(zip(table["figures"], place, strict=True)) for place in places)
        args = table["same"] | dict(zip(table["columns"], setting, strict=True))
        rows.append({"model": model, "args": args | {"devices": len(devices)}, "devices": devices, "host": host})
    return rows


ROWS = _rows("vectors/llama_truth.json")
MORE_ROWS = _rows("data/llama_truth_more.json")
VARIANT_ROWS = _variant_rows("data/llama_truth_variants.json")
MODELS = sorted({row["model"] for row in ROWS})
MORE_MODELS = sorted({row["model"] for row in MORE_ROWS})
VARIANT_MODELS = sorted({row["model"] for row in VARIANT_ROWS})
COLUMNS = {"server": "compute_mib_server", "all": "compute_mib"}
"""`outputs` of a launch -> column of the table."""


class Point(NamedTuple):
    """One compute figure of one device or host. The error is ours minus llama.cpp's, in MiB."""

    outputs: str
    group: str
    on_device: bool
    model: str
    setting: tuple[Any, ...]
    error: float
    wanted: float

    @property
    def in_aim(self) -> bool:
        return abs(self.error) <= max(32.0, 0.03 * self.wanted)

    @property
    def not_under(self) -> bool:
        return self.error >= -max(16.0, 0.02 * self.wanted)


def launch_of(args: dict[str, Any], outputs: str, header: Header) -> Launch:
    """The launch of a row. The server starts an embedder with embeddings on; llama-fit-params does not."""
    known = {"ctx", "ubatch", "batch", "cache_type_k", "cache_type_v", "parallel", "kv_unified", "gpu_layers"}
    assert set(args) == known | {"n_cpu_moe", "tensor_split", "devices", "flash_attn", "repack"}
    return Launch(
        ctx_tokens=args["ctx"],
        ubatch=args["ubatch"],
        batch=args["batch"],
        type_k=args["cache_type_k"],
        type_v=args["cache_type_v"],
        slots=args["parallel"],
        kv_unified=args["kv_unified"],
        flash_attn=args["flash_attn"] == "on",
        gpu_layers=None if args["gpu_layers"] == "all" else args["gpu_layers"],
        cpu_moe_layers=args["n_cpu_moe"],
        devices=args["devices"],
        tensor_split=tuple(args["tensor_split"] or ()),
        outputs=outputs,
        embeddings=header.pooling_type > 0 and outputs == "server",
    )


def group_of(args: dict[str, Any]) -> str:
    if args["devices"] > 1:
        return "two devices"
    if args["n_cpu_moe"]:
        return "experts on the host"
    return {"all": "all layers", 0: "no layer"}.get(args["gpu_layers"], "half of the layers")


def compared(
    header_of: Callable[[str], Header], outputs: str, rows: Rows = ROWS, *, replays: bool | None = None
) -> Iterator[tuple[dict[str, Any], bool, MemoryUse, dict[str, float]]]:
    """For every row and every place: the row, is it a device, our figures, llama.cpp's."""
    tables = {name: model_table(header_of(name)) for name in {row["model"] for row in rows}}
    for row in rows:
        launch = launch_of(row["args"], outputs, header_of(row["model"]))
        projection = project(tables[row["model"]], launch, replays=replays)
        for ours, theirs in zip(projection.devices, row["devices"], strict=True):
            yield row, True, ours, theirs
        yield row, False, projection.host, row["host"]


def compute_points(header_of: Callable[[str], Header], rows: Rows = ROWS, *, every: int = 1) -> list[Point]:
    """Every compute figure of a table. What llama-fit-params asks for is replayed, which takes its time: `every` third
    row, say, is enough of those; and what was replayed once is kept for the next test.
    """
    points = []
    for outputs in COLUMNS:
        chosen = rows[:: every if outputs == "all" else 1]
        new = [row for row in chosen if (outputs, id(row)) not in _kept]
        _kept.update({(outputs, id(row)): [] for row in new})
        for row, on_device, ours, theirs in compared(header_of, outputs, new):
            _kept[outputs, id(row)].append(_point(outputs, row["model"], row["args"], on_device, ours, theirs))
        points += [point for row in chosen for point in _kept[outputs, id(row)]]
    return points


_kept: dict[tuple[str, int], list[Point]] = {}
"""`outputs` and the identity of a row, which lives as long as its table -> the row's points."""


def _point(
    outputs: str, model: str, args: dict[str, Any], on_device: bool, ours: MemoryUse, theirs: dict[str, float]
) -> Point:
    split = tuple(args["tensor_split"]) if args["tensor_split"] else None
    setting = (outputs, model, args["ubatch"], args["gpu_layers"], args["n_cpu_moe"], split)
    wanted = theirs[COLUMNS[outputs]]
    return Point(outputs, group_of(args), on_device, model, setting, ours.compute_bytes / MIB - wanted, wanted)


def error_table(points: list[Point]) -> str:
    """Errors of the compute buffer per kind of launch and per kind of model, as Markdown."""
    groups: dict[tuple[str, str], dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        groups["launch", f"{point.group}, {'device' if point.on_device else 'host'}"][point.outputs].append(point)
        groups["model", kind_of(point.model)][point.outputs].append(point)
    lines = ["| | llama-server | llama-fit-params |", "|---|---|---|"]
    for (_, name), columns in sorted(groups.items()):
        cells = (_cell(columns[outputs]) for outputs in COLUMNS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def kind_of(model: str) -> str:
    """The architecture class of a model of any of the tables."""
    if model in zoo.MODELS:
        return zoo.MODELS[model].kind
    return (more_models.MODELS[model] if model in more_models.MODELS else variants.named(model)).kind


def write(model: str, folder: str | Path) -> str:
    """Write the file of a model of any of the tables; its path."""
    if model in zoo.MODELS:
        return min(zoo.write_model(model, str(folder)))
    return str((more_models if model in more_models.MODELS else variants).write(model, folder))


def _cell(points: list[Point]) -> str:
    errors = sorted(abs(point.error) for point in points)
    median, high, worst = errors[len(errors) // 2], errors[int(0.95 * len(errors))], errors[-1]
    in_aim = sum(point.in_aim for point in points)
    return f"{in_aim} of {len(points)}, {median:.2f} / {high:.1f} / {worst:.0f}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        headers = {name: read_header(write(name, folder)) for name in MODELS + MORE_MODELS + VARIANT_MODELS}
    print(error_table(compute_points(headers.__getitem__, ROWS + MORE_ROWS)))
    print()
    print(error_table(compute_points(headers.__getitem__, VARIANT_ROWS)))


if __name__ == "__main__":
    main()
