"""Load sequence, resolution, variants, patches, the sidecar, process settings, the inputs digest."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.errors import SettingsError
from models_app.core.fields import OVERRIDE_FIELDS, VARIANT_FIELDS
from models_app.core.settings import (
    ApiKey,
    AppSettings,
    BackendEntry,
    ExtraImageModel,
    Override,
    Settings,
    SlotCache,
    Variant,
    override_from_mapping,
    settings_from_mapping,
)
from models_app.core.settings_files.ensure import Target, ensure, would_change
from models_app.core.settings_files.files import read_sidecar
from models_app.core.state import app, edits
from models_app.core.state.api_keys import BUILT_IN, delete_key, reconcile_playground_key, upsert_key
from models_app.core.state.digest import FileRecord, inputs_digest
from models_app.core.state.editor import editor_save, put_variant
from models_app.core.state.extra_models import check_extra_models, merge_extra_models
from models_app.core.state.globs import glob_match
from models_app.core.state.loading import Measured, apply_defaults, base_settings, load_settings, load_state
from models_app.core.state.overrides import merge_overrides, normalise_none, resolve_override
from models_app.core.state.patch import merge_patch, replace_patch, reset_section, save_section
from models_app.core.state.section_forms import section_errors
from models_app.core.state.sidecar import Sidecar, sidecar_from_mapping, sidecar_to_mapping
from models_app.core.state.variants import (
    inherit_text,
    merge_image_variant,
    merge_variant,
    named_variants,
    vision_variant,
)

PATHS = st.text(st.sampled_from("aB/\\[]().*?^$|+ü\n"), max_size=12)


@given(PATHS)
def test_a_text_without_wildcards_matches_itself_in_any_case(text):
    pattern = text.replace("*", "").replace("?", "")
    assert glob_match(pattern, pattern.swapcase())
    assert glob_match("*", text)
    assert glob_match(f"{pattern}*", pattern + text)
    assert glob_match(f"*{pattern}*", text + pattern + text)


def test_hostile_patterns_stay_fast():
    started = time.perf_counter()
    assert not glob_match("*a" * 50 + "*b", "a" * 20_000)
    assert not glob_match("*" * 5000 + "b", "a" * 20_000)
    assert time.perf_counter() - started < 2


def test_rows_shadow_as_a_whole_in_order():
    rows = merge_overrides(
        [Override(match="*b*", ctx=1), Override(match="/m/B.gguf", ctx=2, quant="q4")],
        [Override(match="*", ctx=3, spec="none", tensor_split="None")],
    )
    assert [row.ctx for row in rows] == [2, 1, 3]
    assert rows[2].spec == "none"
    assert rows[2].tensor_split == ""
    assert resolve_override(rows, "/m/b.gguf", "Q4").ctx == 2
    assert resolve_override(rows, "/m/b.gguf", "Q8").ctx == 1
    assert resolve_override(rows, "/m/b.gguf", "Q4", lambda left, right: left == right).ctx == 1
    assert resolve_override(rows[:2], "/x", "") is None


def test_a_blank_match_is_refused_with_its_index():
    with pytest.raises(SettingsError, match=r"overrides\[1\]: match is required"):
        merge_overrides([Override(match="a")], [Override(match=" ")])


TEXT = st.sampled_from(["", "none", " NONE ", "a", "./none"])
SHARED = {"chat_template_file": TEXT, "tensor_split": TEXT, "custom_args": TEXT, "kv_k_draft": TEXT}


@given(st.builds(Override, **SHARED))
def test_normalising_twice_changes_nothing(own):
    once = normalise_none(own)
    assert normalise_none(once) == once
    assert all(getattr(once, name).strip().lower() != "none" for name in SHARED)


@given(st.builds(Override, **SHARED, temp=st.one_of(st.none(), st.just(0.0))))
def test_a_blank_variant_changes_only_what_is_never_inherited(own):
    never = {"ctx": 5, "vram_target_gb": 3.0, "cpu_offload": 2, "unlisted": True, "ctx_checkpoints": 0}
    own = replace(own, **never, checkpoint_min_step=9)
    merged = merge_variant(own, Variant(name="v"))
    assert (merged.ctx, merged.vram_target_gb, merged.cpu_offload, merged.unlisted) == (0, 0.0, 0, False)
    assert merged.ctx_checkpoints is None
    assert replace(merged, **never) == own


def test_variants_inherit_by_the_catalogue():
    own = Override(temp=0.5, threads=4, mlock=True, slot_cache=True, kv_k="q8_0", kv_v="q8_0", checkpoint_min_step=5)
    merged = merge_variant(own, Variant(temp=0.0, slot_cache=False, kv_k="f16", threads=0))
    assert (merged.temp, merged.slot_cache, merged.threads, merged.mlock) == (0.0, False, 4, True)
    assert (merged.kv_k, merged.kv_v) == ("f16", "")
    assert inherit_text(" none ", "a") == ""
    assert inherit_text("  ", "a") == "a"
    assert inherit_text(" b ", "a") == " b "


def test_image_variants_are_entries_of_their_own():
    own = Override(vae_path="a", custom_args="--steps 1", threads=3, variants=(Variant(name="x"),), unlisted=True)
    merged = merge_image_variant(own, Variant(name="x", vae_path="none", custom_args="none", default_steps=4))
    assert (merged.vae_path, merged.custom_args, merged.threads, merged.default_steps) == ("", "", 3, 4)
    assert merged.variants == ()
    assert not merged.unlisted


def test_which_variants_make_profiles():
    own = (Variant(name="Game", ctx=1), Variant(name=" "), Variant(name="VISION", ctx=2))
    fleet = (Variant(name="game", ctx=3), Variant(name="judge"))
    assert [(variant.name, variant.ctx) for variant in named_variants(own, fleet)] == [("Game", 1), ("judge", 0)]
    assert vision_variant(own, fleet).ctx == 2
    assert vision_variant((), ()) is None


def test_every_variant_field_has_a_rule_that_the_merge_knows():
    # The projector's place is the model's on every profile but the twin, which reads the variant itself.
    assert [field.key for field in VARIANT_FIELDS if field.inherit == "model"] == ["mmproj"]
    assert merge_variant(Override(mmproj="gpu"), Variant(mmproj="none")).mmproj == "gpu"
    merge_variant(Override(), Variant())
    merge_image_variant(Override(), Variant())


def test_defaults_of_a_file():
    settings = apply_defaults(
        {
            "minGpuFraction": -1,
            "oomGuardReserveGB": -2,
            "sharedMemory": "maybe",
            "kvQuant": "q6_k",
            "threads": 0,
            "serverExe": "C:\\llama\\llama-server.exe",
            "slotCache": {"enable": True, "maxSessions": 0, "maxDiskGB": 3},
            "denseCtxLadder": [],
            "multiGpu": None,
        }
    )
    assert (settings.min_gpu_fraction, settings.oom_guard_reserve_gb) == (0.0, 0.0)
    assert (settings.shared_memory, settings.kv_quant, settings.threads) == ("auto", "", 7)
    assert settings.sd_server_exe == "C:\\llama\\sd-server"
    assert settings.slot_cache == SlotCache(enable=True, max_disk_gb=3.0)
    assert settings.multi_gpu
    assert apply_defaults({}) == Settings()
    assert apply_defaults({"minGpuFraction": 0}).min_gpu_fraction == 0.5


def test_measured_budgets_fill_only_what_nobody_set():
    measured = Measured(22.0, 60.0)
    assert load_settings({}, Sidecar(), measured=measured).target_vram_gb == 22.0
    assert load_settings({"targetVramGB": 9}, Sidecar(), measured=measured).target_vram_gb == 9.0
    assert load_settings({}, Sidecar(settings={"targetVramGB": 5}), measured=measured).target_vram_gb == 5.0
    assert load_settings({}, Sidecar(), measured=Measured()).target_vram_gb == 7.0


def test_the_load_sequence_lays_the_sidecar_over_the_file():
    document = {
        "settings": {
            "modelsRoot": "/a",
            "displayNames": {"x": "X", "y": "Y"},
            "categoryRoots": {"image": "/i"},
            "extraImageModels": [{"name": "A", "modelPath": "/1"}, {"name": "b", "modelPath": "/2"}],
            "promptEnhancers": [{"model": "e"}],
        },
        "overrides": [{"match": "*"}],
    }
    sidecar = sidecar_from_mapping(
        {
            "settings": {"oomGuardGraceSec": 90, "denseCtxLadder": [131072, 65536, 32768], "loraDirs": {}},
            "displayNames": {"x": "Z"},
            "backendList": [{"id": "1", "kind": "llama", "path": "/l"}],
            "extraImageModels": [{"name": "a", "modelPath": "/3"}],
            "removedExtraImageModels": ["B"],
            "promptEnhancers": [],
            "overrides": [{"match": "/m.gguf"}],
            "unheardOf": 1,
        }
    )
    state = load_state(document, sidecar)
    settings = state.settings
    assert settings.oom_guard_grace_sec == 90
    assert settings.dense_ctx_ladder == Settings().dense_ctx_ladder
    assert settings.display_names == {"x": "Z", "y": "Y"}
    assert [row.model_path for row in settings.extra_image_models] == ["/3"]
    assert settings.prompt_enhancers == ()
    assert settings.backends[0].path == "/l"
    assert [row.match for row in state.overrides] == ["/m.gguf", "*"]
    assert base_settings(document["settings"]).display_names == {"x": "X", "y": "Y"}
    assert sidecar_from_mapping(sidecar_to_mapping(sidecar)) == sidecar


@pytest.mark.parametrize("document", [{"overrides": {}}, {"settings": []}, {"overrides": [7]}])
def test_files_of_another_shape_are_refused(document):
    with pytest.raises(SettingsError):
        load_state(document, Sidecar())


def test_patches():
    stored = {"targetVramGB": 20.0, "threads": 4, "kvQuant": "q8_0"}
    assert merge_patch(stored, {"threads": None, "loraDirs": {}}) == {**stored, "loraDirs": {}}
    assert replace_patch({"threads": None, "other": 1}) is None
    assert save_section("memory", stored, {"targetVramGB": 9, "maxRamGB": None})["autoVram"] is False
    assert "autoVram" not in save_section("memory", stored, {"ttlSec": 0})
    assert save_section("memory", stored, {"ttlSec": 0})["ttlSec"] == 0
    assert save_section("advanced", stored, {"threads": "", "poolIntegratedGpu": False}) == {
        "targetVramGB": 20.0,
        "poolIntegratedGpu": False,
    }
    assert reset_section("advanced", stored) == {"targetVramGB": 20.0}


@pytest.mark.parametrize(
    ("section", "body", "wrong"),
    [
        ("memory", {"targetVramGB": 0}, {"targetVramGB"}),
        ("memory", {"targetVramGB": 8, "maxRamGB": -1, "vramOverheadGB": -0.1}, {"maxRamGB", "vramOverheadGB"}),
        ("memory", {"targetVramGB": "8", "ttlSec": 0}, {"targetVramGB"}),
        ("guards", {"oomGuardReserveGB": -1, "minGpuFraction": -1, "oomGuardGraceSec": 1}, set()),
        ("advanced", {"denseCtxLadder": [4096, 0]}, {"denseCtxLadder"}),
        ("advanced", {"denseCtxLadder": [], "computeBufFactor": 0, "kvQuant": None, "loraDir": ""}, set()),
        ("advanced", {"sharedMemory": " ON ", "loraDirs": {"llm": "/l"}}, set()),
        (
            "advanced",
            {"sharedMemory": "maybe", "threads": -1, "visionCtx": True},
            {"sharedMemory", "threads", "visionCtx"},
        ),
    ],
)
def test_section_forms(section, body, wrong):
    assert set(section_errors(section, body)) == wrong


def test_overrides_are_stored_by_path_identity():
    sidecar = edits.upsert_override(Sidecar(), Override(match="Z:/M/a.gguf", ctx=1), "windows")
    sidecar = edits.upsert_override(sidecar, Override(match="z:\\m\\A.gguf", ctx=2), "windows")
    assert [row.ctx for row in sidecar.overrides] == [2]
    sidecar = edits.upsert_override(sidecar, Override(match="z:/m/a.gguf", ctx=3), "linux")
    assert len(sidecar.overrides) == 2
    assert edits.delete_override(sidecar, "none", "linux") == (sidecar, False)


def test_pruning_spares_patterns_and_what_cannot_be_judged():
    rows = (Override(match="/gone.gguf"), Override(match="rel/x.GGUF"), Override(match="name"), Override(match="/a*"))
    sidecar, gone = edits.prune_overrides(Sidecar(overrides=rows), lambda path: True)
    assert gone == ("/gone.gguf", "rel/x.GGUF")
    assert [row.match for row in sidecar.overrides] == ["name", "/a*"]
    assert edits.prune_overrides(Sidecar(overrides=rows), lambda path: False)[1] == ()


def test_backends_keep_their_provenance():
    stored = (
        BackendEntry(id="1", kind="llama", path="/a", managed=True, component="llama-server", version="b1"),
        BackendEntry(id="2", kind="llama", path="/b", build="b2"),
        BackendEntry(id="3", kind="llama", path="/c"),
    )
    restored = edits.with_provenance([BackendEntry(id="1", kind="llama", path="/new")], stored)
    assert [(row.id, row.path, row.version) for row in restored] == [("1", "/new", "b1"), ("2", "/b", "")]


def test_unknown_categories_are_refused():
    for edit in (edits.set_lora_dir, edits.set_root):
        with pytest.raises(ValueError, match="not a category"):
            edit(Sidecar(), "audio", "/x")


def test_extra_models_of_the_file_are_not_copied_in():
    of_file = [ExtraImageModel(name="a", model_path="/1"), ExtraImageModel(name="b", model_path="/2")]
    sidecar = edits.put_extra_models(Sidecar(), [of_file[0], ExtraImageModel(name="c", model_path="/3")], of_file)
    assert [row.name for row in sidecar.extra_image_models] == ["c"]
    assert sidecar.removed_extra_image_models == ("b",)
    merged = merge_extra_models(of_file, sidecar.extra_image_models, sidecar.removed_extra_image_models)
    assert [row.name for row in merged] == ["a", "c"]
    back = edits.put_extra_models(sidecar, of_file, of_file)
    assert back.removed_extra_image_models == ()


def test_extra_model_forms():
    def status(*rows: ExtraImageModel) -> int:
        return check_extra_models(rows, ["Served", "mine"], ["Mine"], lambda path: path == "/ok")[0]

    assert status(ExtraImageModel(), ExtraImageModel(name="mine", model_path="/ok")) == 200
    assert status(ExtraImageModel(name="served", model_path="/ok")) == 409
    assert status(ExtraImageModel(name="x", model_path="/ok", model_flag="--evil")) == 400
    assert status(ExtraImageModel(name="x", model_path="/ok", t5_path="/gone")) == 400


def test_the_playground_key_comes_and_goes():
    scoped = upsert_key(Sidecar(), ApiKey("a", "k", ("m",)))
    with_key, changed = reconcile_playground_key(scoped, lambda count: "0" * 2 * count)
    assert changed
    assert with_key.api_keys[1] == ApiKey(BUILT_IN, "qm-" + "0" * 48)
    opened = upsert_key(with_key, ApiKey("b", "k2"))
    without, changed = reconcile_playground_key(opened, lambda count: "")
    assert changed
    assert [key.name for key in without.api_keys] == ["a", "b"]
    assert reconcile_playground_key(delete_key(scoped, "A"), lambda count: "")[1] is False


FORM = {"ctx": 4096, "customArgs": " -c 1 ", "tensorSplit": "none", "backend": " b ", "variants": [{"name": "v"}]}


def test_a_save_keeps_what_the_form_does_not_have():
    of_file = override_from_mapping({"match": "*", "quant": "Q4", "threads": 9, "skip": True})
    row = editor_save(of_file, "/m/a.gguf", FORM)
    assert (row.match, row.quant, row.threads, row.skip) == ("/m/a.gguf", "Q4", 0, False)
    assert (row.custom_args, row.ctx, row.tensor_split, row.backend) == (" -c 1 ", 0, "", "b")
    part = editor_save(of_file, "/m/a.gguf", FORM, form_keys={"ctx", "customArgs"})
    assert (part.threads, part.skip, part.backend) == (9, True, "")


@given(st.sampled_from([field.key for field in OVERRIDE_FIELDS if field.kind == "integer"]), st.integers(0, 100))
def test_saving_twice_changes_nothing(key, value):
    once = editor_save(None, "/m/a.gguf", {**FORM, key: value})
    again = {"customArgs": once.custom_args, "variants": [{"name": "v"}], "backend": once.backend}
    again |= {field.key: getattr(once, field.attribute) for field in OVERRIDE_FIELDS if field.kind == "integer"}
    assert editor_save(None, "/m/a.gguf", again) == once


def test_variants_are_replaced_by_name():
    row = put_variant(Override(variants=(Variant(name="A", ctx=1),)), Variant(name="a", ctx=2))
    assert [(variant.name, variant.ctx) for variant in row.variants] == [("a", 2)]
    assert len(put_variant(row, Variant(name="b")).variants) == 2


def test_app_layers_and_form():
    layered = app.layer_app(AppSettings(watch_models=False), AppSettings(watch_models=True, listen=":1"))
    assert (layered.watch_models, layered.listen) == (False, ":1")
    stored, errors = app.save_app(
        AppSettings(listen=":1"), {"listen": "nowhere", "adminAllow": "10.0.0.1, fe80::/10, x"}
    )
    assert set(errors) == {"listen", "adminAllow"}
    assert stored.listen == ":1"
    assert "secret" not in repr(AppSettings(hf_token="secret"))


@pytest.mark.parametrize("text", ["127.0.0.1:80", ":1", "[::1]:80", "host:65535"])
def test_addresses(text):
    assert app.is_address(text)


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "::1:80", "a b:1", "h:65536", "h:99999999999", "h:٣"])
def test_broken_addresses(text):
    assert not app.is_address(text)


def test_the_digest_ignores_the_order_of_the_walk():
    files = [FileRecord(0, "b.gguf", 1, 2), FileRecord(0, "a.gguf", 1, 2), FileRecord(0, "x.txt", 1, 1)]
    assert inputs_digest(files, b"") == inputs_digest(files[1::-1], b"")
    assert inputs_digest(files, b"") != inputs_digest(files, b"", further=[FileRecord(0, "m.ggml", 1, 1)])


@pytest.fixture
def target(tmp_path: Path) -> Target:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.gguf").write_bytes(b"GGUF")
    settings_file = tmp_path / "quartermaster-generate.yaml"
    settings_file.write_text(f"settings:\n  modelsRoot: {tmp_path / 'models'}\n")
    return Target(settings_file, tmp_path / "config.yaml", "1")


def test_ensure_generates_once(target):
    assert would_change(target)
    assert ensure(target, lambda state: "one").regenerated
    assert not would_change(target)
    assert not ensure(target, lambda state: "two").regenerated
    assert target.output.read_text() == "one"
    target.digest_file.unlink()
    assert ensure(target, lambda state: "three").regenerated


def test_a_failed_generation_leaves_the_old_file(target):
    ensure(target, lambda state: "one")
    target.settings_file.write_text(target.settings_file.read_text() + "  threads: 3\n")
    with pytest.raises(RuntimeError):
        ensure(target, lambda state: (_ for _ in ()).throw(RuntimeError))
    assert target.output.read_text() == "one"
    assert would_change(target)


def test_a_missing_root_costs_no_row(target):
    target.sidecar_file.write_text("overrides:\n- match: /gone.gguf\n")
    (target.settings_file.parent / "models" / "a.gguf").unlink()
    (target.settings_file.parent / "models").rmdir()
    assert ensure(target, lambda state: "").pruned == ()
    (target.settings_file.parent / "models").mkdir()
    assert ensure(target, lambda state: "").pruned == ("/gone.gguf",)
    assert read_sidecar(target.sidecar_file.read_bytes()).content == Sidecar()


def test_free_vram_is_measured_each_time(target):
    target.settings_file.write_text(target.settings_file.read_text() + "  autoVram: true\n")
    assert ensure(target, lambda state: "").regenerated
    assert ensure(target, lambda state: "").regenerated


def test_a_broken_file_is_named(target):
    target.sidecar_file.write_text("a: [")
    with pytest.raises(SettingsError, match="quartermaster-overrides"):
        ensure(target, lambda state: "")


def test_settings_take_a_given_zero():
    assert settings_from_mapping({"ttlSec": 0, "threads": None}) == replace(Settings(), ttl_sec=0)
