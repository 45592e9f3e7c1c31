"""The plan panel: what is shown agrees with itself."""

from __future__ import annotations

from models_app.core.catalog import ArgToken, MemoryTerm, Placement, Plan, Projection
from models_app.core.catalog import MemoryUse as Use
from models_app.pages.device_list import MachineDevice, device_lines
from models_app.pages.layer_strip import layer_strip
from models_app.pages.placement_text import placement_sentence, placement_word
from models_app.pages.plan_panel import Machine, command_lines, plan_panel

GIB = 1 << 30
MACHINE = Machine(
    (MachineDevice("GPU 0", 24 * GIB, 22 * GIB), MachineDevice("GPU 1", 12 * GIB, 11 * GIB)), 64 * GIB, 48 * GIB
)


def _placement(**changes: object) -> Placement:
    values: dict[str, object] = {
        "ctx_tokens": 65536,
        "gpu_layers": 99,
        "cpu_moe_layers": 0,
        "type_k": "f16",
        "type_v": "f16",
        "ubatch": 512,
        "batch": 2048,
    }
    return Placement(**{**values, **changes})  # type: ignore[arg-type]


def _plan(**changes: object) -> Plan:
    third = GIB // 3
    terms = (
        MemoryTerm("kv", "Context", (third * 5, third * 2), 0, "cells"),
        MemoryTerm("weights", "Weights", (third * 7, third * 4), third, "layers"),
        MemoryTerm("runtime", "Runtime", (0, 0), 0, "nothing"),
        MemoryTerm("checkpoints", "Context checkpoints", (0, 0), third * 2, "states"),
    )
    values: dict[str, object] = {
        "profile_id": "x",
        "model_class": "llm",
        "verdict": "fits",
        "placement": _placement(slots=2),
        "projection": Projection("exact", (Use("GPU 0"), Use("GPU 1")), Use("host")),
        "terms": terms,
        "est_vram_bytes": third * 18,
        "est_ram_bytes": third * 3,
        "target_bytes": 33 * GIB,
    }
    return Plan(**{**values, **changes})  # type: ignore[arg-type]


def test_order_is_always_the_same_and_empty_parts_are_left_out() -> None:
    panel = plan_panel(_plan(), MACHINE, block_count=32)
    assert [part.key for part in panel.parts] == ["weights", "kv", "checkpoints"]


def test_table_and_bars_show_the_same_totals() -> None:
    panel = plan_panel(_plan(), MACHINE, block_count=32)
    assert panel.totals is not None
    assert panel.bar is not None
    for column, total in enumerate(panel.totals.cells):
        cells = [float(part.cells[column]) for part in panel.parts if part.cells[column] != "-"]
        assert f"{sum(cells):.2f}" == total
        assert panel.bar.rows[column].note.startswith(f"{total} of")
    assert f"{sum(float(total) for total in panel.totals.cells):.2f}" == panel.totals.vram
    assert panel.totals.vram == "6.00"


def test_verdicts_in_words() -> None:
    def headline(**changes: object) -> str:
        return plan_panel(_plan(**changes), MACHINE, block_count=32).headline

    assert headline() == "Fits: 6.0 of 33.0 GiB, context 65,536"
    assert headline(verdict="spills").startswith("Fits with parts in RAM: 6.0 of")
    assert headline(verdict="over").startswith("Does not fit: needs 6.0 of")
    short_of_ram = {"verdict": "over", "est_ram_bytes": 50 * GIB}
    assert headline(**short_of_ram) == "Does not fit: needs 50.0 of 48.0 GiB RAM, context 65,536"
    assert "to spare" not in plan_panel(_plan(**short_of_ram), MACHINE, block_count=32).details
    assert headline(verdict="unknown").startswith("Cannot judge: memory unknown, context ")
    assert headline(est_vram_bytes=0, target_bytes=0).startswith("Runs on the CPU: 1.0 GiB RAM")
    unplanned = plan_panel(
        _plan(
            verdict="unplanned",
            placement=None,
            projection=None,
            terms=(),
            skip_reason="no DINOv3 encoder near it",
            model_class="3d",
        ),
        MACHINE,
        block_count=0,
    )
    assert unplanned.headline == "Not served"
    assert unplanned.details.startswith("no DINOv3 encoder near it. Left out of the config file")
    assert unplanned.totals is None


def test_details_name_the_pool_and_the_spare() -> None:
    panel = plan_panel(_plan(), MACHINE, block_count=32)
    assert panel.details == "per conversation, 2 at once (pool 131,072) · everything on the GPU · 27.0 GiB to spare"


def test_ram_is_drawn_where_it_matters() -> None:
    assert len(plan_panel(_plan(), MACHINE, block_count=32).bar.rows) == 2  # type: ignore[union-attr]
    assert len(plan_panel(_plan(verdict="spills"), MACHINE, block_count=32).bar.rows) == 3  # type: ignore[union-attr]


def test_one_device_has_no_column_of_its_own() -> None:
    terms = (MemoryTerm("weights", "Weights", (GIB,), 0, ""),)
    panel = plan_panel(_plan(terms=terms), Machine(MACHINE.devices[:1], 1, 1), block_count=32)
    assert panel.columns == ()


def test_command_marks_where_words_come_from() -> None:
    tokens = (
        ArgToken("llama-server"),
        ArgToken("-c"),
        ArgToken("8192", knob="ctx"),
        ArgToken("-ngl", "replaced"),
        ArgToken("99", "replaced"),
        ArgToken("-ngl", "custom"),
        ArgToken("-1", "custom"),
    )
    lines = command_lines(_plan(tokens=tokens), {"ctx"})
    assert [(line.text, line.css, line.note) for line in lines] == [
        ("llama-server", "", ""),
        ("-c 8192", "", "set here"),
        ("-ngl 99", "x", "replaced"),
        ("-ngl -1", "c", "custom"),
    ]


def test_placement_in_words() -> None:
    assert placement_word(_placement(), 32) == "all GPU"
    assert placement_word(_placement(gpu_layers=20), 32) == "20/33 layers GPU"
    assert placement_word(_placement(cpu_moe_layers=1), 32) == "1 expert layer CPU"
    assert placement_word(_placement(gpu_layers=0), 32) == "CPU"
    assert placement_sentence(_placement(gpu_layers=0), 32) == "everything in RAM, computed on the CPU"
    assert placement_sentence(_placement(kv_in_ram=True), 32) == "all layers on the GPU, KV cache in RAM"


def test_the_strip_fills_from_the_last_layer_back() -> None:
    strip = layer_strip(4, _placement(gpu_layers=3, cpu_moe_layers=3))
    assert strip is not None
    assert [(run.key, run.count) for run in strip.runs] == [("other", 2), ("kv", 1), ("weights", 1)]
    assert strip.label == "4 layers, the first 2 on the CPU, the experts of the first 3 in RAM."
    assert layer_strip(0, _placement()) is None
    whole = layer_strip(4, _placement())
    assert whole is not None
    assert (whole.label, whole.legend) == ("4 layers, all on the GPU.", "")


def test_several_devices_say_what_each_gets() -> None:
    devices = (
        MachineDevice("GPU 0 · small", 12 * GIB, 11 * GIB, "CUDA1"),
        MachineDevice("GPU 1 · large", 22 * GIB, 22 * GIB, "CUDA0", 2 * GIB),
    )
    placed = _placement(tensor_split=(0.33, 0.67))
    assert device_lines(devices, placed, 32) == (
        "GPU 0 · small (CUDA1): layers 0 to 10, 33 % of the split; 11.00 GiB may be used.",
        "GPU 1 · large (CUDA0): layers 11 to 31, the output and the fixed buffers, 67 % of the split;"
        " 22.00 GiB may be used, 2.00 GiB are left to others.",
    )
    some = device_lines(devices, _placement(tensor_split=(0.0, 1.0), gpu_layers=2), 32)
    assert "small (CUDA1): no layer, 0 %" in some[0]
    assert "large (CUDA0): layer 31, the output" in some[1]
    panel = plan_panel(_plan(placement=placed), Machine(devices, 64 * GIB, 48 * GIB), block_count=32)
    assert panel.devices == device_lines(devices, placed, 32)


def test_one_device_says_it_in_the_placement_alone() -> None:
    alone = (MachineDevice("GPU 0", 24 * GIB, 22 * GIB),)
    assert device_lines(alone, _placement(), 32) == ()
    assert device_lines(alone * 2, _placement(gpu_layers=0), 32) == ()
