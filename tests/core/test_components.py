"""Component pool: signals, ranking, pins, arms, what is withheld."""

from __future__ import annotations

import dataclasses
import json
import struct
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models_app.core.catalog import Header
from models_app.core.components import naming
from models_app.core.components.declared import fill_encoders
from models_app.core.components.pool import Pool, PoolEntry, Wish, architecture_rank, caption_factor
from models_app.core.components.ranking import Ranking
from models_app.core.components.resolve import DiffusionModel, diffusion_model, resolve_components
from models_app.core.components.scan import build_pool, classify_header, component_files, recognise, survey
from models_app.core.components.signals import Signal, classify_shapes, recognise_shapes, unflattened
from models_app.core.discovery.selection import select
from models_app.core.discovery.walk import list_files
from models_app.core.errors import HeaderError
from models_app.core.readers import read_header
from models_app.core.readers.gguf import read_gguf
from models_app.core.settings import Encoders, Override
from tests.gguf_bytes import header_bytes
from tests.whole_tree import Tree

T5_TENSOR = "encoder.block.0.layer.0.SelfAttention.q.weight"


def llm(path: str, width: int, family: str = "qwen3", size_bytes: int = 1, **more: object) -> PoolEntry:
    return PoolEntry(path, "llm", family, width, size_bytes, **more)


class TestSignals:
    @pytest.mark.parametrize(
        ("shapes", "signal"),
        [
            ({"decoder.conv_in.weight": (512, 16, 3, 3)}, Signal("vae", "flux")),
            ({"decoder.conv_in.weight": (384, 32, 3, 3)}, None),
            ({"decoder.conv_in.weight": (512, 7, 3, 3), "conv1.weight": (1, 1, 1, 1, 1)}, None),
            ({"decoder.conv_in.weight": (512,), "model.embed_tokens.weight": (9, 8)}, Signal("llm", "", 8)),
            ({"conv1.weight": (1,) * 5, "encoder.conv_in.weight": (1,) * 5}, Signal("vae", "wan3d")),
            ({T5_TENSOR: (4096, 4096), "shared.weight": (256384, 4096)}, Signal("t5", "umt5", 4096)),
            ({T5_TENSOR: (4096, 4096), "shared.weight": (32128, 4096)}, Signal("t5", "", 4096)),
            ({"model.embed_tokens.weight": (9, 8), "visual.x": (1,)}, Signal("llm", "", 8, vision=True)),
            ({"model.embed_tokens.weight": (9, 0)}, None),
            ({}, None),
        ],
    )
    def test_shapes(self, shapes: dict[str, tuple[int, ...]], signal: Signal | None) -> None:
        assert classify_shapes(shapes) == signal

    @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(
        st.dictionaries(
            st.sampled_from(["decoder.conv_in.weight", "conv1.weight", "dec_in_proj.weight", T5_TENSOR]),
            st.lists(st.integers(0, 64), max_size=6).map(tuple),
        )
    )
    def test_any_shape_is_answered(self, shapes: dict[str, tuple[int, ...]]) -> None:
        classify_shapes(shapes)

    @pytest.mark.parametrize(
        ("name", "facts", "role"),
        [
            ("a.gguf", {"architecture": " CLIP "}, ""),
            ("a.gguf", {"architecture": "umt5", "embedding_length": 4096}, "t5"),
            ("a.gguf", {"architecture": "flux", "embedding_length": 3072}, ""),
            ("a.gguf", {"architecture": "qwen3"}, ""),
            ("x-pe-t2i.gguf", {"architecture": "qwen3vl", "embedding_length": 8}, ""),
            ("mtp-x.gguf", {"architecture": "qwen3", "embedding_length": 8}, ""),
            ("x-dflash.gguf", {"architecture": "qwen3", "embedding_length": 8}, ""),
            ("a.gguf", {"architecture": "qwen3", "embedding_length": 8, "pooling_type": 3}, ""),
            ("a.gguf", {"architecture": "qwen3", "embedding_length": 8, "decision_type": "kev"}, ""),
            ("a.gguf", {"architecture": "qwen35", "embedding_length": 8, "ssm_inner_size": 1}, "recurrent-llm"),
            ("text-encoder.gguf", {"architecture": "gemma4", "embedding_length": 8}, "llm"),
        ],
    )
    def test_gguf_headers(self, name: str, facts: dict[str, object], role: str) -> None:
        signal = classify_header(name, Header(**facts))
        assert (signal.role if signal else "") == role


class TestPicks:
    def test_layouts(self) -> None:
        assert [caption_factor(7680, width) for width in (7680, 2560, 960, 3840, 0, -1)] == [1, 3, 8, 0, 0, 0]

    def test_order_layout_rank_size_path(self) -> None:
        pool = Pool(
            [
                llm("/b", 2560, "qwen3", 4),
                llm("/a", 2560, "qwen3", 4),
                llm("/big", 2560, "gemma3", 99),
                llm("/exact", 7680, "granite", 1),
            ]
        )
        assert [entry.path for entry in pool.ranked_llms(Wish(7680)).entries] == ["/exact", "/a", "/b", "/big"]

    def test_a_pin_wins_inside_its_layout_only(self) -> None:
        pool = Pool([llm("/small", 2560), llm("/large", 2560, size_bytes=9), llm("/exact", 7680)])
        assert pool.llm(Wish(2560), "/small").path == "/small"
        assert pool.llm(Wish(7680), "/small").path == "/exact"
        assert pool.llm(Wish(2560), "/exact").path == "/large"
        assert pool.llm(Wish(0)) is None

    def test_pins_compare_like_paths_of_the_platform(self) -> None:
        entry = llm("C:/M/Enc.gguf", 2560)
        assert Pool([entry], "windows").knows_llm("c:\\m\\enc.gguf")
        assert not Pool([entry], "linux").knows_llm("c:/m/enc.gguf")

    def test_architecture_limit_lets_unknown_ones_pass(self) -> None:
        pool = Pool([llm("/vl", 2560, "qwen3vl", 9), llm("/plain", 2560, ""), llm("/ok", 2560, "QWEN3")])
        assert {entry.path for entry in pool.ranked_llms(Wish(2560, architectures=("qwen3",))).entries} == {
            "/plain",
            "/ok",
        }

    @pytest.mark.parametrize(
        ("second", "because", "equals"),
        [
            (llm("/b", 7680), "layers", 0),
            (llm("/b", 2560, "gemma3"), "architecture", 0),
            (llm("/b", 2560, size_bytes=0), "size", 0),
            (llm("/b", 2560), "path", 1),
            (llm("/b", 999), "only", 0),
        ],
    )
    def test_a_ranking_says_what_decided(self, second: PoolEntry, because: str, equals: int) -> None:
        first = llm("/a", 2560)
        ranking = Pool([first, second]).ranked_llms(Wish(7680 if second.width == 7680 else 2560))
        assert (ranking.because, len(ranking.equals)) == (because, equals)
        assert ranking.best == (second if because == "layers" else first)

    def test_ranks(self) -> None:
        assert [architecture_rank(name) for name in ("Qwen2vl", "ministral3", "llama", "phi3", "")] == [3, 2, 1, 0, 0]

    def test_t5_and_umt5_never_stand_in_for_each_other(self) -> None:
        pool = Pool([PoolEntry("/t5", "t5", "t5encoder", 4096), PoolEntry("/umt5", "t5", "umt5", 4096)])
        assert pool.t5().path == "/t5"
        assert pool.t5(umt5=True).path == "/umt5"
        assert Pool(pool.entries[:1]).t5(umt5=True) is None

    def test_widths_and_hints_narrow_but_never_empty(self) -> None:
        pool = Pool([PoolEntry(f"/{name}", "vae", "wan3d", width) for name, width in (("a", 16), ("b", 16), ("c", 64))])
        assert pool.vae("wan3d", 64, ["a"]).path == "/c"
        assert pool.vae("wan3d", 48, ["b"]).path == "/b"
        assert pool.vae("wan3d", 16, ["zzz"]).path == "/a"
        assert pool.vae("ltx") is None
        assert [pool.vaes("wan3d", 16, [hint]).because for hint in ("b", "zzz")] == ["name", "path"]
        assert pool.vaes("ltx") == Ranking()


class TestPins:
    def test_gone_pins_are_refilled_and_unknown_ones_kept(self) -> None:
        pool = Pool([PoolEntry("/ae", "vae", "flux"), llm("/q", 8)])
        declared = Encoders(flux_vae="/gone", clip_l="/there", qwen_llm="/gone2")
        filled = fill_encoders(declared, pool, lambda path: path.startswith("/gone"))
        assert (filled.flux_vae, filled.zimage_vae, filled.clip_l, filled.qwen_llm) == ("/ae", "/ae", "/there", "")
        assert fill_encoders(declared, None, lambda path: True) == declared


class TestArms:
    pool = Pool(
        [
            PoolEntry("/ae", "vae", "flux"),
            PoolEntry("/f2", "vae", "flux2"),
            PoolEntry("/wan", "vae", "wan3d", 16),
            PoolEntry("/clip", "clip", width=768),
            PoolEntry("/t5", "t5", "t5encoder", 4096),
            PoolEntry("/umt5", "t5", "umt5", 4096),
            llm("/q4", 2560),
            llm("/vl4", 2560, "qwen3vl", mmproj="/mm", vision=True),
            llm("/h3cut", 5120, "qwen3vl", 1, block_count=50),
            llm("/h3full", 5120, "qwen3vl", 9, block_count=64),
            PoolEntry("/rec", "recurrent-llm", "qwen35", 4096),
        ]
    )

    def paths(self, architecture: str, name: str, width: int = 0, **more: object) -> dict[str, str]:
        override = more.pop("override", Override())
        found = resolve_components(DiffusionModel(architecture, name, width, **more), self.pool, Encoders(), override)
        return {**found.paths, **dict.fromkeys(found.missing, "")}

    @pytest.mark.parametrize(
        ("architecture", "name", "width", "roles"),
        [
            ("sdxl", "x", 0, {}),
            ("flux", "chroma1-hd", 4096, {"vae": "/ae", "t5xxl": "/t5"}),
            ("flux", "flux.2-dev", 15360, {"vae": "/f2", "llm": "/h3full"}),
            ("flux", "flux-2-klein-4b", 7680, {"vae": "/f2", "llm": "/q4"}),
            ("flux", "FLUX.3-klein", 20480, {"vae": "/f2", "llm": "/vl4"}),
            ("flux", "flux1-dev", 4096, {"vae": "/ae", "clip_l": "/clip", "t5xxl": "/t5"}),
            ("lumina2", "z-image-turbo", 2560, {"vae": "/ae", "llm": "/q4"}),
            ("qwen_image", "krea-2", 2560, {"vae": "/wan", "llm": "/q4"}),
            ("wan", "ernie-image", 3072, {"vae": "/f2", "llm": ""}),
            ("moss_image", "moss", 4096, {"vae": "/f2", "llm": "/rec"}),
            ("sd3", "sd3.5", 4096, {}),
        ],
    )
    def test_images(self, architecture: str, name: str, width: int, roles: dict[str, str]) -> None:
        assert self.paths(architecture, name, width) == roles

    def test_videos(self) -> None:
        assert self.paths("", "wan2.2", 4096, video_kind="wan") == {"vae": "/wan", "t5xxl": "/umt5"}
        h3 = self.paths("", "h3", 5120, video_kind="minimax_h3", has_audio_out=True)
        assert h3 == {"vae": "", "llm": "/h3cut", "audio_vae": ""}

    def test_the_projector_follows_its_encoder(self) -> None:
        edit = self.paths("qwen_image", "krea-edit", 2560)
        assert (edit["llm"], edit["llm_vision"]) == ("/vl4", "/mm")
        off = self.paths("qwen_image", "krea-edit", 2560, override=Override(llm_vision="off"))
        assert "llm_vision" not in off
        own = self.paths("qwen_image", "krea", 2560, override=Override(text_encoder_path="/x", llm_vision_path="/y"))
        assert (own["llm"], own["llm_vision"]) == ("/x", "/y")

    def test_an_own_path_settles_a_missing_role_and_none_drops_one(self) -> None:
        own = self.paths("wan", "ernie-image", 3072, override=Override(text_encoder_path="/x", vae_path="NONE"))
        assert own == {"llm": "/x"}


class TestScan:
    def put(self, path: Path, shapes: dict[str, list[int]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        table = {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
        text = json.dumps(table).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text)

    def test_broken_files_split_parts_and_links_do_no_harm(self, tmp_path: Path) -> None:
        self.put(tmp_path / "vae/ae.safetensors", {"decoder.conv_in.weight": [512, 16, 3, 3]})
        self.put(tmp_path / "llm/model-00001-of-00002.safetensors", {"model.embed_tokens.weight": [9, 8]})
        (tmp_path / "x.safetensors").write_bytes(b"\xff" * 40)
        (tmp_path / "vae/link.safetensors").symlink_to(tmp_path / "vae/ae.safetensors")
        listing = list_files([str(tmp_path)], platform="linux")
        assert len(component_files(listing)) == 2
        pool = build_pool(listing, read_header)
        assert [(Path(entry.path).name, entry.role, entry.family) for entry in pool.entries] == [
            ("ae.safetensors", "vae", "flux")
        ]

    def test_a_projector_in_a_folder_of_several_families_goes_to_the_one_it_names(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        tree.chat("mixed/Qwen2.5-VL-7B-Q8_0.gguf", "qwen2vl", width=3584)
        tree.chat("mixed/Gemma-3-4B-Q8_0.gguf", "gemma3", width=2560)
        tree.projector("mixed/mmproj-Gemma-3-4B-F16.gguf")
        tree.chat("plain/Qwen2.5-VL-7B-Q8_0.gguf", "qwen2vl", width=3584)
        tree.projector("plain/mmproj-F16.gguf")
        pool = build_pool(list_files([str(tmp_path)], platform="linux"), read_header)
        assert {entry.path.removeprefix(f"{tmp_path}/"): Path(entry.mmproj).name for entry in pool.entries} == {
            "mixed/Gemma-3-4B-Q8_0.gguf": "mmproj-Gemma-3-4B-F16.gguf",
            "mixed/Qwen2.5-VL-7B-Q8_0.gguf": "",
            "plain/Qwen2.5-VL-7B-Q8_0.gguf": "mmproj-F16.gguf",
        }

    def test_files_of_packages_and_of_older_snapshots_are_no_components(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        tree.raw("TRELLIS/pipeline.json", b"{}")
        self.put(tmp_path / "TRELLIS/ckpts/decoder.safetensors", {"decoder.conv_in.weight": [512, 16, 3, 3]})
        for commit, name in (("old", "ae"), ("new", "ae")):
            self.put(
                tmp_path / f"models--o--r/snapshots/{commit}/{name}.safetensors",
                {"decoder.conv_in.weight": [512, 16, 3, 3]},
            )
        tree.raw("models--o--r/refs/main", b"new")
        pool = build_pool(list_files([str(tmp_path)], platform="linux"), read_header)
        assert [entry.path.removeprefix(f"{tmp_path}/") for entry in pool.entries] == [
            "models--o--r/snapshots/new/ae.safetensors"
        ]

    def test_what_no_model_is_given_says_why(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        tree.chat("x-pe-i2i.gguf", "qwen3vl", width=4096)
        tree.chat("embed.gguf", "qwen3", width=1024, pooling_type=3)
        tree.chat("a-fastmtp.gguf", "qwen3", width=1024)
        tree.projector("mmproj.gguf")
        tree.gguf("birefnet.gguf", "birefnet")
        tree.gguf("some-vae.gguf", "audiocpp")
        tree.gguf("odd-encoder.gguf", "odd")
        self.put(tmp_path / "small.safetensors", {"decoder.conv_in.weight": [384, 32, 3, 3]})
        self.put(tmp_path / "style.safetensors", {"x.lora_down.weight": [4, 4]})
        self.put(tmp_path / "sdxl.safetensors", {"model.diffusion_model.x": [4, 4]})
        (tmp_path / "cut.safetensors").write_bytes(b"\x01")
        listing = list_files([str(tmp_path)], platform="linux")
        found = survey(select(listing), read_header)
        assert {Path(entry.path).name: (entry.role, entry.withheld[:17]) for entry in found.entries} == {
            "a-fastmtp.gguf": ("drafter", "a FastMTP head, w"),
            "birefnet.gguf": ("matting", ""),
            "embed.gguf": ("llm", "an embedding mode"),
            "mmproj.gguf": ("projector", ""),
            "small.safetensors": ("vae", "a small decoder, "),
            "some-vae.gguf": ("audio-part", ""),
            "x-pe-i2i.gguf": ("enhancer", ""),
        }
        assert all(entry.recognised_by for entry in found.entries)
        assert build_pool(listing, read_header).entries == ()
        assert {Path(item.path).name: item.kind for item in found.findings} == {
            "cut.safetensors": "header-unreadable",
            "odd-encoder.gguf": "component-unknown",
            "sdxl.safetensors": "component-unknown",
            "style.safetensors": "adapter",
        }

    def test_an_unreadable_file_is_left_out(self, tmp_path: Path) -> None:
        (tmp_path / "a.gguf").touch()

        def fail(path: str) -> Header:
            raise HeaderError("empty", "empty", path=path)

        assert build_pool(list_files([str(tmp_path)], platform="linux"), fail).entries == ()


@pytest.mark.parametrize(
    ("name", "vision", "reference"),
    [
        ("credit-model", False, False),
        ("sd15-inpaint", True, False),
        ("sd_instruct-pix2pix", True, False),
        ("flux1-fill-dev", False, False),
        ("qwenimage2.1", True, True),
        ("FLUX.2 klein 9b", False, True),
        ("klein-9b", False, False),
        ("flux-2-dev", False, False),
        ("", False, False),
    ],
)
def test_names_of_edit_models(name: str, vision: bool, reference: bool) -> None:
    assert naming.wants_vision_encoder(name) is vision
    assert naming.is_reference_edit(name) is reference


class TestFlattened:
    """GGUF has four dimensions: a converter either notes the shape it had, or multiplies the two outermost ones."""

    def test_a_noted_shape_counts(self) -> None:
        tensors = [
            {"name": "conv1.weight", "shape": [1, 1, 32, 32], "type": 1},
            {"name": "decoder.conv1.weight", "shape": [3, 3, 3, 16 * 384], "type": 1},
        ]
        kv = [
            ["comfy.gguf.orig_shape.conv1.weight", "array<i32>", [32, 32, 1, 1, 1]],
            ["comfy.gguf.orig_shape.decoder.conv1.weight", "array<i32>", [384, 16, 3, 3, 3]],
        ]
        assert self.signal(tensors, kv) == Signal("vae", "wan3d", 16)

    def test_multiplied_dimensions_are_told_by_the_bias(self) -> None:
        tensors = [
            {"name": "conv1.weight", "shape": [1, 1, 1, 32 * 32], "type": 1},
            {"name": "conv1.bias", "shape": [32], "type": 1},
            {"name": "decoder.conv1.weight", "shape": [3, 3, 3, 16 * 384], "type": 1},
            {"name": "decoder.conv1.bias", "shape": [384], "type": 1},
        ]
        assert self.signal(tensors, []) == Signal("vae", "wan3d", 16)

    def test_other_four_dimensional_convolutions_stay_what_they_are(self) -> None:
        shapes = {"conv1.weight": (64, 3, 7, 7), "conv1.bias": (64,)}
        assert unflattened(shapes) == shapes
        assert recognise_shapes(unflattened(shapes)) is None

    def test_a_note_that_does_not_fit_is_not_believed(self) -> None:
        tensors = [{"name": "conv1.weight", "shape": [1, 1, 32, 32], "type": 1}]
        for noted in ([32, 32, 1, 1, 2], [-32, -32, 1, 1, 1], []):
            assert self.signal(tensors, [["comfy.gguf.orig_shape.conv1.weight", "array<i32>", noted]]) is None

    @pytest.mark.parametrize(
        ("shape", "width"),
        [([2, 2, 1, 48, 3072], 48), ([2, 2, 1, 16, 5120], 16), ([2, 2, 1, 36, 5120], 16), ([2, 2, 1, 48 * 3072], 48)],
    )
    def test_a_wan_network_says_which_vae_it_reads(self, shape: list[int], width: int) -> None:
        outputs = shape[-1] // 48 if len(shape) == 4 else shape[-1]
        for prefix in ("", "model.diffusion_model."):
            tensors = [
                {"name": f"{prefix}patch_embedding.weight", "shape": shape, "type": 1},
                {"name": f"{prefix}patch_embedding.bias", "shape": [outputs], "type": 1},
            ]
            head = header_bytes({"kv": [["general.architecture", "string", "wan"]], "tensors": tensors})
            model = diffusion_model(read_gguf(BytesIO(head), 1 << 40), "wan2.1-t2v")
            assert model.latent_width == width
        pool = Pool(
            [PoolEntry(f"/wan{name}_vae", "vae", "wan3d", latents) for name, latents in (("2.2", 48), ("_2.1", 16))]
        )
        asked = dataclasses.replace(model, video_kind="wan")
        chosen = resolve_components(asked, pool, Encoders(), Override())
        assert pool.entry(chosen.paths["vae"]).width == width

    def signal(self, tensors: list[dict[str, object]], kv: list[list[object]]) -> Signal | None:
        head = header_bytes({"kv": kv, "tensors": tensors})
        return recognise("a.gguf", read_gguf(BytesIO(head), 1 << 40))


def test_every_tensor_that_decides_is_kept_by_the_gguf_reader() -> None:
    from models_app.core.components import signals
    from models_app.core.readers.tensor_scan import COMPONENT_TENSORS

    biases = {signals.bias_of(tensor) for tensor in signals.FLATTENED if tensor != signals.WAN_INPUT}
    wanted = {rule.tensor for rule in signals._RULES} | {rule.width_tensor for rule in signals._RULES}
    assert (
        wanted - {"", "model.embed_tokens.weight"} | {signals._PICTURE_VAE, "shared.weight"} | biases
        == COMPONENT_TENSORS
    )
