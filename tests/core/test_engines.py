"""Plans and entries of every class that is no chat model on llama-server."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpus_app.core.budget import budget_of
from models_app.core.catalog import FileEntry, Header, Row
from models_app.core.classes import CLASSES
from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.export import load, schema
from models_app.core.export.build import Declared, build_document
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.document import Skipped
from models_app.core.export.entry import PlannedModel
from models_app.core.export.findings import blocks
from models_app.core.launch.executables import resolve_executable
from models_app.core.plans import plan_row
from models_app.core.plans.engines.registry import ENGINES
from models_app.core.plans.engines.request import Surroundings
from models_app.core.plans.engines.surroundings import surroundings_of, vad_candidates
from models_app.core.settings import BackendEntry, ExtraImageModel, Override, Settings, Variant
from models_app.core.units import GIB
from tests import whole_tree
from tests.core.test_generate import run

FLEET = Settings(target_vram_gb=24, vram_overhead_gb=1, max_ram_gb=64, threads=4)
VLLM = (BackendEntry("v", "vllm", path="/opt/vllm"),)
HF = Header(
    format="hf",
    architecture="llama",
    block_count=32,
    head_count=32,
    head_count_kv=8,
    key_length=128,
    value_length=128,
    context_length=131072,
)


def row(model_class, name="m.gguf", size_gib=2.0, **fields):
    stem = name.rsplit(".", 1)[0].lower()
    return Row(
        id=stem,
        full_path=f"/m/{name}",
        file_name=name,
        size_bytes=int(size_gib * GIB),
        model_class=model_class,
        **fields,
    )


def plans(found, header=None, *, settings=FLEET, override=None, around=None):
    budget = budget_of([settings.target_vram_gb], settings.max_ram_gb)
    return plan_row(found, header or Header(), settings=settings, override=override, budget=budget, surroundings=around)


def plan(found, header=None, **choices):
    return plans(found, header, **choices)[0]


def text(found):
    return " ".join(found.argv)


def test_every_class_but_chat_has_an_engine():
    assert set(ENGINES) == {model_class.slug for model_class in CLASSES} - {"llm"}


class TestDiffusion:
    flux = Header(architecture="flux")

    def test_what_is_missing_is_named_and_the_model_served(self):
        found = plan(row("image", "flux1-dev.gguf"), self.flux)
        assert found.verdict == "fits"
        assert found.warnings == ("needs [vae clip_l t5xxl], for which no file was found or pinned",)

    def test_components_of_the_host_and_their_sizes(self):
        files = [
            PoolEntry("/c/ae.safetensors", "vae", "flux", size_bytes=GIB),
            PoolEntry("/c/clip.safetensors", "clip", width=768, size_bytes=GIB),
            PoolEntry("/c/t5.safetensors", "t5", width=4096, size_bytes=9 * GIB),
        ]
        around = surroundings_of(files, "linux")
        found = plan(row("image", "flux1-dev.gguf", 12), self.flux, around=around)
        assert found.warnings == ()
        assert "--vae /c/ae.safetensors --clip_l /c/clip.safetensors --t5xxl /c/t5.safetensors" in text(found)
        assert "--max-vram 10" in text(found)  # 23 - 12 - 1 for the VAE; encoders stay in RAM
        assert found.est_ram_bytes == 10 * GIB

    def test_a_dropped_component_is_no_path(self):
        own = Override(vae_path="none", t5_path="/own/t5.gguf")
        found = plan(row("image", "flux1-dev.gguf"), self.flux, override=own)
        assert "--vae" not in found.argv
        assert "--t5xxl /own/t5.gguf" in text(found)

    def test_offloading_says_why(self):
        found = plan(row("image", "flux1-dev.gguf", 30), self.flux)
        assert found.verdict == "spills"
        assert "visit the GPU in parts" in found.reasons[0].text
        pinned = plan(row("image", "flux1-dev.gguf", 30), self.flux, override=Override(offload_to_cpu="off"))
        assert pinned.verdict == "over"
        assert "switched off by hand" in pinned.reasons[0].text

    @pytest.mark.parametrize("size_gib", [1, 12, 30])
    def test_parts_sum_to_the_estimate(self, size_gib):
        found = plan(row("image", "flux1-dev.gguf", size_gib), self.flux)
        assert sum(sum(item.device_bytes) for item in found.terms) == pytest.approx(found.est_vram_bytes, abs=4)
        assert found.terms[-1].label == "Left to the server"

    def test_variants_are_entries_and_inherit(self):
        own = Override(default_steps=9, variants=(Variant(name="Fast one", default_steps=4), Variant(name="vision")))
        base, fast = plans(row("image", "sd15.gguf"), Header(architecture="sd1"), override=own)
        assert (base.profile_id, fast.profile_id) == ("sd15", "sd15-fast-one")
        assert "--steps 9" in text(base)
        assert "--steps 4" in text(fast)

    def test_a_long_clip_costs_and_is_warned_about(self):
        header = Header(architecture="", video_kind="ltxav", cond_hidden=3840)
        short = plan(row("video", "ltx-2.gguf", 14.61), header)
        long = plan(row("video", "ltx-2.gguf", 14.61), header, override=Override(default_frames=361))
        assert (short.verdict, long.verdict) == ("fits", "spills")
        assert any("361 are set" in warning for warning in long.warnings)

    def test_the_persons_text_replaces_a_generated_value(self):
        own = Override(custom_args="--max-vram 7")
        found = plan(row("image", "sd15.gguf"), Header(architecture="sd1"), override=own)
        assert found.argv.count("--max-vram") == 1
        assert "--max-vram 7" in text(found)


class TestEncoders:
    def test_on_the_cpu_all_is_ram(self):
        own = Override(device="cpu")
        found = plan(row("embedding", "bge.gguf"), Header(architecture="bert", context_length=512), override=own)
        assert "-ngl 0 --device none" in text(found)
        assert (found.est_vram_bytes, found.est_ram_bytes) == (0, int(2.5 * GIB))

    def test_decision_counts_its_cache_and_projector(self):
        header = replace(HF, format="gguf", decision_type="kev")
        found = plan(row("decision", mmproj_path="/m/p.gguf", mmproj_size_bytes=GIB), header)
        assert found.est_vram_bytes == pytest.approx((2 + 1 + 1 + 0.5) * GIB)
        assert "--mmproj /m/p.gguf" in text(found)
        assert "-ub" not in found.argv
        assert found.entry["capabilities"] == {"decision": True, "decisionType": "kev"}

    def test_too_large_is_said(self):
        found = plan(row("embedding", "huge.gguf", 30), Header(architecture="bert"))
        assert found.verdict == "over"


class TestSpeech:
    def test_a_talker_needs_its_codec(self):
        found = plan(row("tts", "qwen-talker.gguf", 1.9), Header(architecture="qwen3-tts"))
        assert found.warnings == ("no codec lies beside it; its server needs one",)
        assert found.facts["codec"] == "MISSING"

    def test_a_talker_by_the_formula(self):
        talker = row("tts", "qwen-talker.gguf", 1.9, codec_path="/m/codec.gguf", codec_size_bytes=int(0.35 * GIB))
        header = Header(architecture="qwen3-tts")
        assert plan(talker, header).est_vram_bytes / GIB == pytest.approx(3.49, abs=0.005)
        batch = plan(talker, header, override=Override(custom_args="--max-batch 4"))
        assert batch.est_vram_bytes / GIB == pytest.approx(3.49 + 3 * 0.8828, abs=0.01)
        assert "--voices-dir" not in batch.argv

    def test_the_wrong_server_is_warned_about(self):
        found = plan(row("tts", "kokoro.gguf"), Header(architecture="kokoro"))
        assert "cannot read its weights" in found.warnings[0]


class TestAudio:
    def entry(self, family, settings=FLEET, around=None, override=None, **fields):
        return plan(
            row("audiocpp", "a-q8_0.gguf", 1.0, **fields),
            Header(architecture="audiocpp", audio_family=family),
            settings=settings,
            around=around,
            override=override,
        )

    @pytest.mark.parametrize(
        ("family", "reason"),
        [
            ("", "no audiocpp.model_spec.family"),
            ("rvc", "music / separation / voice-conversion"),
            ("who_knows", "unknown audio.cpp family"),
        ],
    )
    def test_families_that_nothing_serves(self, family, reason):
        found = self.entry(family)
        assert reason in found.skip_reason
        assert found.lines == ()

    def test_an_aligner_is_named_and_priced(self):
        around = surroundings_of(
            [PoolEntry("/c/forced-aligner.gguf", "audio-part", "qwen3_forced_aligner", size_bytes=GIB)],
            "linux",
            vad_path="/opt/vad",
        )
        found = self.entry("qwen3_asr", around=around)
        assert found.entry["audiocpp"]["sessionOptions"] == {
            "qwen3_asr.forced_aligner_path": "/c/forced-aligner.gguf",
            "qwen3_asr.vad_model_path": "/opt/vad",
        }
        assert found.est_vram_bytes / GIB == pytest.approx(2.4)
        assert any("no forced aligner" in note for note in self.entry("qwen3_asr").notes)

    def test_a_pinned_device_and_a_negative_one(self):
        fleet = replace(FLEET, backends=(BackendEntry("a", "audiocpp", path="/b/server", variant="vulkan"),))
        assert "--device 1" in text(self.entry("vibevoice", fleet, override=Override(audio_device=1)))
        assert "--device" not in self.entry("vibevoice", fleet, override=Override(audio_device=-1)).argv

    def test_a_package_costs_its_largest_stage(self):
        names = {
            "language_model_q8_0.gguf": 4,
            "rvq_depth_decoder_q8_0.gguf": 1,
            "transformer_q8_0.gguf": 3,
            "condition_encoder.gguf": 1,
            "vocoder.gguf": 1,
        }
        parts = tuple(FileEntry(f"/m/Music/{name}", size * GIB, 0) for name, size in names.items())
        package = Row(
            id="music-q8_0",
            full_path="/m/Music/language_model_q8_0.gguf",
            file_name="language_model_q8_0.gguf",
            size_bytes=10 * GIB,
            model_class="audiocpp",
            shards=parts,
            audio_family="minimax_music3",
        )
        vulkan = replace(FLEET, backends=(BackendEntry("a", "audiocpp", path="/b/s", variant="vulkan"),))
        found = plan(package, settings=vulkan)
        block = found.entry["audiocpp"]
        assert block["path"] == "/m/Music"
        assert block["sessionOptions"]["minimax_music3.weight_type"] == "f16"
        assert block["sessionOptions"]["minimax_music3.language_model_gguf"] == "language_model_q8_0.gguf"
        assert found.est_vram_bytes == 6 * GIB


class TestVllm:
    fleet = replace(FLEET, backends=VLLM)

    def test_a_folder_needs_vllm(self):
        assert plan(row("hf", "Llama-3"), HF).skip_reason.startswith("safetensors model folder needs a vllm backend")

    def test_window_share_and_cache(self):
        found = plan(row("hf", "Llama-3", 15.0), HF, settings=self.fleet)
        # 24 - 15 - 1.5 GiB hold 61,440 tokens of 128 KiB; the cache is pinned with a margin of a tenth
        assert "--max-model-len 61440" in text(found)
        assert f"--kv-cache-memory-bytes {round((7.5 * 1.1 + 0.25) * GIB)}" in text(found)
        assert "--enable-auto-tool-choice --tool-call-parser llama3_json" in text(found)
        assert found.entry["capabilities"] == {"tools": True}

    def test_pins(self):
        own = Override(ctx=8192, vllm_gpu_util=0.5, vllm_tool_parser="none", vllm_tensor_parallel=2)
        found = plan(row("hf", "Llama-3", 15.0), HF, settings=self.fleet, override=own)
        assert "--max-model-len 8192" in text(found)
        assert "--gpu-memory-utilization 0.5" in text(found)
        assert "--kv-cache-memory-bytes" not in found.argv
        assert "--tool-call-parser" not in found.argv
        assert "--tensor-parallel-size 2" in text(found)
        assert found.est_vram_bytes == 12 * GIB

    def test_weights_beyond_the_budget(self):
        found = plan(row("hf", "Llama-3", 40.0), HF, settings=self.fleet)
        assert found.verdict == "over"
        assert "--max-model-len 4096" in text(found)
        assert "its weights exceed the budget" in found.warnings

    def test_a_gguf_where_vllm_was_chosen(self):
        chosen = replace(FLEET, backends=(BackendEntry("v", "vllm", path="/opt/vllm", default=True),))
        found = plan(row("llm"), replace(HF, format="gguf"), settings=chosen)
        assert "--quantization gguf" in text(found)
        for split in (row("llm", shard_count=3), row("llm", "m-00001-of-00003.gguf")):
            assert "several parts" in plan(split, replace(HF, format="gguf"), settings=chosen).skip_reason


class TestThreeD:
    package = Row(id="t", full_path="/m/TRELLIS.2", file_name="TRELLIS.2", model_class="3d", dino_path="/m/dino")

    def test_the_cache_budget_is_the_price(self):
        assert plan(self.package).est_vram_bytes == 11 * GIB
        own = Override(custom_args="--model-cache-budget-mib 4096")
        assert plan(self.package, override=own).est_vram_bytes == 7 * GIB

    def test_without_its_encoder_it_is_left_out(self):
        assert "DINOv3" in plan(replace(self.package, dino_path="")).skip_reason

    def test_its_mesh_is_simplified_where_the_build_can(self):
        flag = "--mesh-postprocess-simplify"
        older = Surroundings(flags=frozenset({"--model", "--dino", "--model-cache-budget-mib"}))
        newer = Surroundings(flags=older.flags | {flag})
        unasked, old, new = (plan(self.package, around=around) for around in (None, older, newer))
        assert [flag in found.argv for found in (unasked, old, new)] == [True, False, True]
        assert "millions of triangles" in old.notes[0]
        assert new.notes == ()


def test_classes_share_one_device_where_there_are_several():
    """A server with one device is told which one the sizes are for."""
    budget = budget_of([24, 12], 64, names=("a", "b"))
    budget = replace(budget, backend_ids=("Vulkan1", "Vulkan0"), main_gpu=1)
    found = row("image", "sd15.gguf")
    made = plan_row(found, Header(architecture="sd1"), settings=FLEET, budget=budget)
    document = build_document([PlannedModel(found, Header(), made, budget=budget)], FLEET, "T")
    assert document.entries[0].fields["env"] == ["GGML_VK_VISIBLE_DEVICES=0"]


class TestSeveralDevices:
    """The host's target is for all devices together; a server that uses one has only that one's part."""

    fleet = replace(FLEET, target_vram_gb=34, backends=VLLM)
    small_and_large = budget_of([11, 23], 64)

    def on_two(self, found, header=None, override=None):
        made = plan_row(found, header or Header(), settings=self.fleet, override=override, budget=self.small_and_large)
        return made[0]

    def test_an_image_model_has_the_larger_one(self):
        found = self.on_two(row("image", "flux.gguf", 12.0), Header(architecture="flux"))
        assert found.target_bytes == 23 * GIB
        assert found.est_vram_bytes == 22 * GIB, "less the headroom of the host"
        assert "--max-vram 10" in text(found)
        weights = next(term for term in found.terms if term.key == "weights")
        assert weights.device_bytes == (0, 12 * GIB)

    def test_what_fits_into_both_together_only_does_not_fit(self):
        assert (
            self.on_two(row("embedding", size_gib=30.0), Header(architecture="bert", context_length=512)).verdict
            == "over"
        )

    def test_vllm_on_both_has_twice_the_smaller_part(self):
        one = self.on_two(row("hf", "Llama-3", 16.0), HF)
        both = self.on_two(row("hf", "Llama-3", 16.0), HF, Override(vllm_tensor_parallel=2))
        assert (one.target_bytes, both.target_bytes) == (23 * GIB, 22 * GIB)
        weights = next(term for term in both.terms if term.key == "weights")
        assert weights.device_bytes == (8 * GIB, 8 * GIB)


def test_a_folder_of_several_parts_is_no_gguf_of_several_parts():
    fleet = replace(FLEET, backends=VLLM)
    assert plan(row("hf", "Llama-3", 15.0, shard_count=4), HF, settings=fleet).skip_reason == ""


def test_a_hand_declared_model_follows_the_row_of_its_name():
    fleet = replace(FLEET, extra_image_models=(ExtraImageModel("x", "/x.safetensors", default_steps=5, threads=3),))
    own = Override(match="x", default_steps=8, unlisted=True, ttl_sec=0)
    document = build_document([], fleet, "T", declared=Declared({"x": own}))
    entry = document.entries[0]
    assert "--steps 8" in " ".join(entry.command)
    assert "-t 3" in " ".join(entry.command)
    assert (entry.fields["ttl"], entry.fields["unlisted"]) == (0, True)
    skipped = build_document([], replace(fleet, extra_image_models=(ExtraImageModel("", "/x"),)), "T").models[0]
    assert isinstance(skipped, Skipped)
    assert "no name" in skipped.reason


@pytest.mark.parametrize(
    ("own_target", "devices", "vram", "env"),
    [
        (0, budget_of([24], 64), 23, None),
        (0, budget_of([12, 8], 64), 11, ["CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=0"]),
        (10, budget_of([12, 8], 64), 10, ["CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=0"]),
        (0, None, 23, None),
    ],
    ids=["one device", "two devices", "a target of its own", "nobody looked"],
)
def test_a_hand_declared_model_has_its_target_or_that_of_the_device_it_runs_on(own_target, devices, vram, env):
    model = ExtraImageModel("x", "/x.safetensors", vram_target_gb=own_target)
    fleet = replace(FLEET, extra_image_models=(model,))
    entry = build_document([], fleet, "T", declared=Declared(devices=lambda override: devices)).entries[0]
    assert f"--max-vram {vram}" in " ".join(entry.command)
    assert (entry.fields["estVramGB"], entry.fields.get("env")) == (vram, env)


def test_an_override_names_a_hand_declared_model_by_its_file_too():
    fleet = replace(FLEET, extra_image_models=(ExtraImageModel("x", "/x.safetensors"),))
    own = Override(match="/x.safetensors", default_steps=8)
    entry = build_document([], fleet, "T", declared=Declared({own.match: own})).entries[0]
    assert "--steps 8" in " ".join(entry.command)


def test_where_a_voice_detector_may_lie():
    assert vad_candidates("/opt/audio/bin/server")[:2] == [
        "/opt/audio/bin/assets/framework/models/silero_vad",
        "/opt/audio/assets/framework/models/silero_vad",
    ]
    assert vad_candidates("server") == []


def test_nothing_known_of_the_host_is_no_error():
    assert Surroundings().pool is None
    assert Pool(()).entry("") is None
    assert resolve_executable(Settings(), "gone", "upscale").path == ""


@pytest.mark.parametrize("dialect", ["llama-swap", "quartermaster"])
def test_the_tree_of_every_kind_becomes_a_file(dialect, tmp_path):
    """Every servable model has its command, each other one its reason; both judges accept the file."""
    roots = [path for path, _ in whole_tree.build(tmp_path / "tree")][:2]
    report = tmp_path / "report.json"
    more = [word for root in roots[1:] for word in ("--models", root)]
    words = [*more, "--dialect", dialect, "--report", str(report), "--backend", "vllm=/opt/vllm"]
    code, made, _ = run(roots[0], *words, data_dir=tmp_path)
    assert code == 0
    config = load.load(made).value
    assert schema.is_valid(dialect, config)
    told = json.loads(report.read_text())
    classes = {entry["class"] for entry in told["entries"]}
    # Into a pipe llama-swap's list of an audio.cpp model cannot be written beside the file.
    beside = {"audiocpp"} if dialect == "quartermaster" else set()
    assert classes >= {"llm", "image", "video", "sam", "tts", "3d", "hf"} | beside
    assert all(item["reason"] for item in told["skipped"])
    assert not any("not planned" in item["reason"] for item in told["skipped"])
    assert not blocks(BY_SLUG[dialect].check(made.encode(), "posix"))
