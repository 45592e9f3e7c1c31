"""Families: keys, inheritance, prompt rewriters, audio packages, 3D companions."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.catalog import FileEntry, Header, Row
from models_app.core.discovery import enhancers
from models_app.core.discovery.audio_packages import audio_package, find_aligner
from models_app.core.discovery.families import family_key, model_base_key
from models_app.core.discovery.inheritance import Gate, are_compatible, gate_of, inherit, inherit_by_root
from models_app.core.discovery.sidecars import draft_bytes, is_inherited, resolve_projector
from models_app.core.discovery.trellis import companions

GATE = Gate("qwen35", 5120, 64, 248320)


@pytest.mark.parametrize(
    ("model_id", "base", "family"),
    [
        ("qwen3.6-27b-instruct-ud-q4_k_xl", "qwen3.6-27b-instruct", "qwen3.6-27b"),
        ("thinkingcap-qwen3.6-27b", "thinkingcap-qwen3.6-27b", "qwen3.6-27b"),
        ("qwen3.6-27b-q4_k_m-mtp-q4_k_m", "qwen3.6-27b", "qwen3.6-27b"),
        ("qwen3.6-35b-a3b-q4_k_m", "qwen3.6-35b-a3b", "qwen3.6-35b-a3b"),
        ("deepseek-r1-distill-qwen-7b-q8_0", "deepseek-r1-distill-qwen-7b", "qwen-7b"),
        ("llama-3.1-8b-instruct", "llama-3.1-8b-instruct", "llama-3.1-8b"),
        ("mixtral-8x7b-instruct-v0.1-q4_0", "mixtral-8x7b-instruct-v0.1", "mixtral-8x7b"),
        ("qwen3-vl-8b-instruct-q8_0", "qwen3-vl-8b-instruct", "qwen3-vl-8b"),
        ("phi-4-mini-3.8b-it", "phi-4-mini-3.8b-it", "phi-4-mini-3.8b"),
        ("granite-4.0-h-1b-q8_0", "granite-4.0-h-1b", "granite-4.0-h-1b"),
        ("qwen3-coder-30b-a3b-instruct", "qwen3-coder-30b-a3b-instruct", "qwen3-coder-30b-a3b"),
        ("q8_0", "q8_0", "q8_0"),
        ("7b-model", "7b-model", "7b-model"),
        ("  Qwen3-32B-Q4_K_M-GGUF ", "qwen3-32b", "qwen3-32b"),
        ("", "", ""),
        ("-", "-", "-"),
    ],
)
def test_keys(model_id: str, base: str, family: str) -> None:
    assert (model_base_key(model_id), family_key(model_id)) == (base, family)


PARTS = st.sampled_from(
    [
        "qwen3.6",
        "27b",
        "a3b",
        "instruct",
        "ud",
        "i1",
        "q4_k_m",
        "4",
        "3.1",
        "vl",
        "mini",
        "8x7b",
        "v2",
        "-",
        "x",
    ]
)


@given(st.lists(PARTS, max_size=8).map("-".join))
def test_keys_do_not_change_when_applied_again(model_id: str) -> None:
    base = model_base_key(model_id)
    assert model_base_key(base) == base
    assert family_key(family_key(model_id)) == family_key(model_id)
    assert family_key(base) == family_key(model_id)


def row(path: str, base_id: str, quant: str = "Q8_0", size_bytes: int = 1, **more: object) -> Row:
    return Row(id=path, full_path=path, base_id=base_id, quant=quant, size_bytes=size_bytes, **more)


def given_to(rows: list[Row], gates: dict[str, Gate] | None = None) -> dict[str, str]:
    known = gates if gates is not None else {item.full_path: GATE for item in rows}
    return {item.full_path: item.mmproj_path for item in inherit(rows, known)}


def test_nearest_kin_gives_first() -> None:
    givers = [
        row("quant", "m-7b-it", mmproj_path="of-quant"),
        row("base", "m-7b", mmproj_path="of-base", size_bytes=9),
        row("peer", "m-7b-uncensored", mmproj_path="of-peer", size_bytes=99),
    ]
    taker = row("taker", "m-7b-it", "Q4_0")
    assert given_to([*givers, taker])["taker"] == "of-quant"
    assert given_to([*givers[1:], taker])["taker"] == "of-base"
    assert given_to([*givers[2:], taker])["taker"] == "of-peer"
    assert given_to([taker])["taker"] == ""


def test_same_quant_then_larger_then_lower_path() -> None:
    taker = row("taker", "m-7b-c", "q4_0")
    rows = [
        row("z", "m-7b-a", "Q8_0", 50, mmproj_path="large"),
        row("y", "m-7b-b", "Q4_0", 5, mmproj_path="same"),
    ]
    assert given_to([*rows, taker])["taker"] == "same"
    rows[1] = row("y", "m-7b-b", "Q6_K", 50, mmproj_path="lower-path")
    assert given_to([*rows, taker])["taker"] == "lower-path"


def test_own_sidecar_stays_and_givers_are_those_of_the_start() -> None:
    rows = [row("a", "m-7b", mmproj_path="own"), row("b", "n-7b"), row("c", "m-7b")]
    assert given_to(rows) == {"a": "own", "b": "", "c": "own"}


@pytest.mark.parametrize(
    "other",
    [
        Gate("qwen3", 5120, 64, 248320),
        Gate("qwen35", 4096, 64, 248320),
        Gate("qwen35", 5120, 48, 248320),
        Gate("qwen35", 5120, 64, 151936),
    ],
)
def test_the_header_gate_refuses(other: Gate) -> None:
    rows = [row("a", "m-7b", mmproj_path="own"), row("b", "m-7b")]
    assert given_to(rows, {"a": GATE, "b": other})["b"] == ""


def test_unknown_facts_never_match() -> None:
    one = Header(architecture="Qwen35", embedding_length=5120, block_count=64)
    assert not are_compatible(one, one)
    assert not are_compatible(Header(), Header())
    full = Header(architecture=" Qwen35 ", embedding_length=5120, block_count=64, vocab_size=9)
    assert gate_of(full).architecture == "qwen35"
    assert are_compatible(full, full)


def test_a_root_serves_itself_before_it_looks_elsewhere() -> None:
    rows = [
        row("1/peer", "m-7b-x", mmproj_path="same-root", root="1"),
        row("1/taker", "m-7b", root="1"),
        row("2/quant", "m-7b", size_bytes=9, mmproj_path="other-root", root="2"),
        row("3/taker", "m-7b", root="3"),
    ]
    filled = {
        item.full_path: item.mmproj_path for item in inherit_by_root(rows, {item.full_path: GATE for item in rows})
    }
    assert filled["1/taker"] == "same-root"
    assert filled["3/taker"] == "other-root"


def test_order_of_rows_does_not_matter() -> None:
    rows = [
        row(f"{base}{size}", base, quant, size, mmproj_path=f"p{base}{size}" if size else "")
        for base, quant, size in itertools.product(("m-7b", "m-7b-it", "m-7b-x"), ("Q8_0",), (0, 1, 2))
    ]
    expected = given_to(rows)
    for seed in range(5):
        shuffled = rows[:]
        random.Random(seed).shuffle(shuffled)
        assert given_to(shuffled) == expected


def test_sidecar_sums_and_origin() -> None:
    rows = [
        row("a/m", "m", draft_path="a/mtp.gguf", draft_size_bytes=5),
        row("b/m", "m", draft_path="a/mtp.gguf", draft_size_bytes=5),
        row("c/m", "m"),
    ]
    assert draft_bytes(rows) == 5
    assert [is_inherited(item, item.draft_path) for item in rows] == [False, True, False]


def test_a_projector_named_by_hand() -> None:
    found = ("d/mm.gguf", 7)
    assert resolve_projector(found, "  ", None) == found
    assert resolve_projector(found, "none", None) == found
    assert resolve_projector(found, " x.gguf ", FileEntry("x.gguf", 3, 0)) == ("x.gguf", 3)
    assert resolve_projector(found, "gone.gguf", None) == ("gone.gguf", 0)


@pytest.mark.parametrize(
    ("name", "direction", "family"),
    [
        ("Qwen-Image-2.1-PE-I2I-BF16.gguf", "i2i", "qwen-image-2.1"),
        ("x/y\\Qwen_Image 2.1_pe_t2i.safetensors", "t2i", "qwen-image-2.1"),
        ("someones-prompt-enhancer-7b", "", "someones"),
        ("flux-promptenhancer-v2", "", "flux"),
        ("pe-t2i-7b", "t2i", ""),
        ("a-pe-x-pe-i2i", "i2i", "a"),
    ],
)
def test_prompt_rewriters(name: str, direction: str, family: str) -> None:
    found = enhancers.enhancer_name(name)
    assert found == enhancers.EnhancerName(direction, family)


@pytest.mark.parametrize("name", ["gpt-pe-7b", "flux-t2i-turbo", "Pegasus-7B", "x-i2i-pe", "", "pe", "-"])
def test_other_names_are_no_rewriters(name: str) -> None:
    assert enhancers.enhancer_name(name) is None


def test_pairs_keep_the_first_of_each_direction() -> None:
    table = enhancers.detect(["f-pe-t2i-q8_0", "f-pe-t2i-q4_0", "f-pe-i2i-q8_0", "pe-t2i-7b", "f-7b"])
    pair = enhancers.pair_of(table, "F-Q8_0")
    assert pair == enhancers.Pair("f-pe-t2i-q8_0", "f-pe-i2i-q8_0")
    assert enhancers.pair_of(table, "other") == enhancers.Pair()
    assert enhancers.resolve(pair, "None", "") == enhancers.Pair("None", "f-pe-i2i-q8_0")
    assert enhancers.resolve(pair, "f-pe-t2i-q8_0-vision", "chat-vision").text == "f-pe-t2i-q8_0"
    assert enhancers.resolve(pair, "", "chat-vision").edit == "chat-vision"


def test_audio_packages() -> None:
    assert audio_package("x", {"a.gguf": "", "b.gguf": "moss_tts_nano"}) is None
    package = audio_package(
        "MM3-GGUF", {"vocoder.gguf": "minimax_music3", "language_model_Q8_0.gguf": "", "other.gguf": ""}
    )
    assert package is not None
    assert (package.models, package.consumed) == ((), {"vocoder.gguf", "language_model_Q8_0.gguf"})
    song = audio_package("y", {"yue2-3b-q8_0.gguf": "yue2", "yue2-vae-f32.gguf": ""})
    assert song is not None
    assert song.models[0].options["yue2.vae_gguf"] == "yue2-vae-f32.gguf"


def test_aligner_needs_name_and_family() -> None:
    family = "qwen3_forced_aligner"
    assert (
        find_aligner([("a/aligned.gguf", "qwen3_asr"), ("b/x.gguf", family), ("c/Align.gguf", family)])
        == "c/Align.gguf"
    )
    assert find_aligner([]) == ""


def test_trellis_companions_prefer_the_nearest_place() -> None:
    files = [
        FileEntry("/m/T/dino-in/model.safetensors", 1, 0),
        FileEntry("/m/T/dino-in/config.json", 1, 0),
        FileEntry("/m/dino-out/model.safetensors", 1, 0),
        FileEntry("/m/dino-out/config.json", 1, 0),
        FileEntry("/m/o/BiRefNet-Q8.gguf", 1, 0),
    ]
    found = companions("/m", "/m/T", files)
    assert (found.dino, found.birefnet) == ("/m/T/dino-in", "/m/o/BiRefNet-Q8.gguf")
    assert companions("/m", "/m/T", files[2:]).dino == "/m/dino-out"
