"""From files to rows: ids, classes, split sets, sidecars, links, and files that misbehave."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from models_app.core.catalog import Header, Row
from models_app.core.discovery.inventory import Inventory, discover, reader_of
from models_app.core.discovery.roots import Root
from models_app.core.discovery.selection import select
from models_app.core.discovery.walk import list_files
from models_app.core.errors import HeaderError, MalformedHeader, SourceUnreadable
from models_app.core.readers import read_header
from tests.zoo.zoo import write_model


def chat(architecture: str = "qwen3", **facts: Any) -> Header:
    return Header(
        **{
            "architecture": architecture,
            "embedding_length": 4096,
            "block_count": 32,
            "vocab_size": 150000,
            **facts,
        }
    )


CLIP = Header(architecture="clip")


@dataclass
class Tree:
    """A folder of empty files of given sizes, and the headers that reading them gives."""

    base: Path
    headers: dict[str, Header | HeaderError] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)

    def put(self, name: str, header: Header | HeaderError | None = None, size_bytes: int = 10) -> Path:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.truncate(path, size_bytes)
        self.headers[str(path)] = header if header is not None else chat()
        return path

    def folder(self, name: str, header: Header | HeaderError) -> None:
        self.headers[str(self.base / name)] = header

    def header_of(self, path: str) -> Header:
        self.reads[path] += 1
        return reader_of(self.headers)(path)

    def found(self, *roots: str | Root) -> Inventory:
        places = [
            Root(
                str(self.base / (root.path if isinstance(root, Root) else root)),
                root.category if isinstance(root, Root) else "",
            )
            for root in roots or ("",)
        ]
        inventory = discover(list_files(places, platform="linux"), self.header_of)
        assert not self.reads or max(self.reads.values()) == 1
        return inventory

    def rows(self, *roots: str | Root) -> dict[str, Row]:
        return {row.id: row for row in self.found(*roots).rows}

    def shown(self, path: str) -> str:
        return os.path.relpath(path, self.base) if path else ""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def reasons(inventory: Inventory) -> dict[str, str]:
    return {os.path.basename(item.path): item.kind for item in inventory.dropped}


def test_a_row_carries_what_its_path_and_header_say(tree: Tree) -> None:
    tree.put("pub/repo/Qwen3-8B-Q4_K_M.gguf", size_bytes=5000)
    (row,) = tree.found().rows
    assert (row.id, row.base_id, row.quant) == ("qwen3-8b-q4_k_m", "qwen3-8b", "Q4_K_M")
    assert (row.publisher, row.repo) == ("pub", "repo")
    assert (row.model_class, row.category) == ("llm", "llm")
    assert (row.size_bytes, row.shard_count, row.shards) == (5000, 1, ())
    assert row.root == str(tree.base)
    assert row.mtime_ns > 0


def test_rows_are_sorted_by_id_publisher_and_path(tree: Tree) -> None:
    for name in ("z/a/M-Q8_0.gguf", "b/a/M-Q8_0.gguf", "b/0/M-Q8_0.gguf", "z/a/A-Q8_0.gguf"):
        tree.put(name)
    assert [tree.shown(row.full_path) for row in tree.found().rows] == [
        "z/a/A-Q8_0.gguf",
        "b/0/M-Q8_0.gguf",
        "b/a/M-Q8_0.gguf",
        "z/a/M-Q8_0.gguf",
    ]


def test_split_set_is_one_row_with_the_size_of_all_parts(tree: Tree) -> None:
    for number in (1, 2, 3):
        tree.put(f"p/r/M-70B-Q4_K_M-0000{number}-of-00003.GGUF", size_bytes=number)
    inventory = tree.found()
    (row,) = inventory.rows
    assert (row.id, row.file_name) == ("m-70b-q4_k_m", "M-70B-Q4_K_M.GGUF")
    assert (row.size_bytes, row.shard_count, row.missing_shards) == (6, 3, ())
    assert [part.size_bytes for part in row.shards] == [1, 2, 3]
    assert list(tree.reads) == [str(tree.base / "p/r/M-70B-Q4_K_M-00001-of-00003.GGUF")]
    assert inventory.findings == ()


def test_a_gap_in_a_set_flags_the_row(tree: Tree) -> None:
    for number in (1, 4):
        tree.put(f"M-Q8_0-0000{number}-of-00004.gguf")
    inventory = tree.found()
    (row,) = inventory.rows
    assert row.missing_shards == (2, 3)
    (finding,) = inventory.findings
    assert (finding.kind, finding.text) == ("shards-missing", "missing part 2, 3 of 4")


def test_a_set_without_its_first_part_is_a_finding_and_no_row(tree: Tree) -> None:
    tree.put("M-Q8_0-00002-of-00003.gguf")
    inventory = tree.found()
    assert inventory.rows == ()
    assert [finding.kind for finding in inventory.findings] == ["shards-missing"]
    assert "part 1 of 3" in inventory.findings[0].text


@pytest.mark.parametrize("name", ["M-00000-of-00000.gguf", "M-00009-of-00002.gguf", "M-00000-of-00003.gguf"])
def test_impossible_part_numbers_do_no_harm(tree: Tree, name: str) -> None:
    tree.put(name)
    inventory = tree.found()
    assert inventory.rows == ()
    assert reasons(inventory) == {name: "later-shard"}


def test_a_huge_part_count_stays_small(tree: Tree) -> None:
    tree.put("M-00001-of-99999.gguf")
    (row,) = tree.found().rows
    assert row.shard_count == 99999
    assert len(row.missing_shards) == 64


def test_unreadable_header_keeps_the_row_and_names_code_and_offset(tree: Tree) -> None:
    path = tree.put("M-Q8_0.gguf", MalformedHeader("bad-count", "7 tensors promised", offset=24))
    inventory = tree.found()
    (row,) = inventory.rows
    assert (row.model_class, row.class_reason) == ("", "unreadable header: 7 tensors promised")
    (finding,) = inventory.findings
    assert (finding.kind, finding.path, finding.code, finding.offset) == (
        "header-unreadable",
        str(path),
        "bad-count",
        24,
    )


def test_a_file_that_vanishes_between_listing_and_reading(tree: Tree) -> None:
    tree.put("a.gguf", SourceUnreadable("unreadable", "it does not exist"))
    tree.put("b.gguf")
    inventory = tree.found()
    assert [row.id for row in inventory.rows] == ["a", "b"]
    assert [finding.code for finding in inventory.findings] == ["unreadable"]


def test_a_header_that_was_never_read_counts_as_unreadable(tree: Tree) -> None:
    tree.put("a.gguf")
    tree.headers.clear()
    (row,) = tree.found().rows
    assert row.class_reason == "unreadable header: the header was not read"


def test_components_drafters_and_heads_are_dropped_by_name(tree: Tree) -> None:
    names = {
        "t5xxl_fp16.gguf": "dropped-encoder",
        "x-fast-mtp.gguf": "dropped-fastmtp",
        "mtp-x-7b.gguf": "drafter-mtp",
        "x-DFlash-Q8_0.gguf": "drafter-dflash",
        "qwen-tokenizer-12hz.gguf": "codec",
        "BiRefNet-F16.gguf": "dropped-encoder",
    }
    for name in names:
        tree.put(name)
    inventory = tree.found()
    assert inventory.rows == ()
    assert reasons(inventory) == names
    assert not tree.reads


def test_encoders_adapters_and_matrices_are_dropped_by_header(tree: Tree) -> None:
    tree.put("umtfive.gguf", Header(architecture="umt5"))
    tree.put("flan-t5-Q8_0.gguf", Header(architecture="t5"))
    tree.put("lora.gguf", Header(architecture="llama", general_type="adapter"))
    tree.put("matrix.gguf", Header(general_type="imatrix"))
    tree.put("m.gguf", CLIP)
    inventory = tree.found()
    assert [row.id for row in inventory.rows] == ["flan-t5-q8_0"]
    assert reasons(inventory) == {
        "umtfive.gguf": "not-a-model",
        "lora.gguf": "not-a-model",
        "matrix.gguf": "not-a-model",
        "m.gguf": "projector",
    }


def test_a_classifier_is_listed_with_the_reason_and_no_class(tree: Tree) -> None:
    tree.put("von-1.2.gguf", chat("modernbert", non_causal=True))
    inventory = tree.found()
    (row,) = inventory.rows
    assert row.model_class == ""
    assert "not causal" in row.class_reason
    assert [finding.kind for finding in inventory.findings] == ["not-servable"]


def test_sam_files_are_rows_without_a_header(tree: Tree) -> None:
    tree.put("sam2.1_hiera_tiny_f16.ggml")
    tree.put("whisper-base.ggml")
    (row,) = tree.found().rows
    assert (row.id, row.model_class, row.is_sam, row.category) == ("sam2.1-hiera-tiny-f16", "sam", True, "segment")
    assert not tree.reads


def test_an_unreadable_projector_is_no_row(tree: Tree) -> None:
    tree.put("mmproj-F16.gguf", MalformedHeader("bad-magic", "not a GGUF file"))
    inventory = tree.found()
    assert inventory.rows == ()
    assert reasons(inventory) == {"mmproj-F16.gguf": "unreadable-projector"}


def test_a_half_downloaded_file_is_a_row_with_a_finding(tree: Tree) -> None:
    tree.put("m-7b-Q8_0.gguf", chat(data_complete=False, warnings=("the file ends before its last tensor",)))
    inventory = tree.found()
    assert len(inventory.rows) == 1
    assert [(finding.kind, finding.text) for finding in inventory.findings] == [
        ("incomplete", "the file ends before its last tensor")
    ]


def test_text_of_a_header_reaches_a_reason_on_one_line(tree: Tree) -> None:
    tree.put("m-7b-Q8_0.gguf", chat("evil\nline\x00" + "x" * 5000))
    (row,) = tree.found().rows
    assert row.class_reason.isprintable()
    assert len(row.class_reason) <= 300


class TestSidecars:
    def test_a_folder_of_one_model_shares_its_sidecars(self, tree: Tree) -> None:
        tree.put("m/Gemma-4-12B-it-Q4_0.gguf")
        tree.put("m/Gemma-4-12B-it-Q8_0.gguf")
        tree.put("m/mtp-gemma-4-12B-it.gguf", size_bytes=77)
        tree.put("m/mmproj-BF16.gguf", CLIP)
        tree.put("m/mmproj-F16.gguf", CLIP, size_bytes=99)
        tree.put("m/mmproj-F32.gguf", CLIP)
        for row in tree.found().rows:
            assert (tree.shown(row.draft_path), row.draft_kind) == ("m/mtp-gemma-4-12B-it.gguf", "mtp")
            assert row.draft_size_bytes == 77
            assert (tree.shown(row.mmproj_path), row.mmproj_size_bytes) == ("m/mmproj-F16.gguf", 99)

    def test_a_mixed_folder_pairs_by_name_only(self, tree: Tree) -> None:
        tree.put("Gemma-4-12B-it-Q4_0.gguf", chat("gemma4"))
        tree.put("Qwen3-VL-8B-Q4_K_M.gguf", chat("qwen3vl"))
        tree.put("Llama-3.1-8B-Q4_K_M.gguf", chat("llama"))
        tree.put("mmproj-F16.gguf", CLIP)
        tree.put("mmproj-Qwen3-VL-8B-F16.gguf", CLIP)
        tree.put("gemma-4-12b-it-mmproj-Q8_0.gguf", CLIP)
        tree.put("mtp-gemma-4-12B-it.gguf")
        rows = tree.rows()
        assert {name: tree.shown(row.mmproj_path) for name, row in rows.items()} == {
            "gemma-4-12b-it-q4_0": "gemma-4-12b-it-mmproj-Q8_0.gguf",
            "qwen3-vl-8b-q4_k_m": "mmproj-Qwen3-VL-8B-F16.gguf",
            "llama-3.1-8b-q4_k_m": "",
        }
        assert [name for name, row in rows.items() if row.draft_path] == ["gemma-4-12b-it-q4_0"]

    def test_image_models_and_embedders_take_none(self, tree: Tree) -> None:
        tree.put("flux1-dev-Q8_0.gguf", Header(architecture="flux"))
        tree.put("bge-m3-F16.gguf", chat("bert", pooling_type=2))
        tree.put("mmproj-F16.gguf", CLIP)
        assert [row.mmproj_path for row in tree.found().rows] == ["", ""]

    def test_mtp_is_preferred_to_dflash_and_the_first_part_counts(self, tree: Tree) -> None:
        tree.put("m-7b-Q8_0.gguf")
        tree.put("a-dflash.gguf")
        tree.put("mtp-m-7b-00001-of-00002.gguf")
        tree.put("mtp-m-7b-00002-of-00002.gguf")
        (row,) = tree.found().rows
        assert (tree.shown(row.draft_path), row.draft_kind) == ("mtp-m-7b-00001-of-00002.gguf", "mtp")

    def test_codecs_go_to_talkers_of_the_folder(self, tree: Tree) -> None:
        tree.put("t/qwen3-tts-talker-1.7b-Q8_0.gguf", chat("qwen3-tts"))
        tree.put("t/qwen3-tts-tokenizer-12hz-F16.gguf", size_bytes=55)
        tree.put("u/qwen3-tts-talker-1.7b-F16.gguf", chat("qwen3-tts"))
        rows = tree.rows()
        assert rows["qwen3-tts-talker-1.7b-q8_0"].codec_size_bytes == 55
        assert rows["qwen3-tts-talker-1.7b-f16"].codec_path == ""

    def test_relatives_inherit_across_folders_and_roots(self, tree: Tree) -> None:
        tree.put("one/Gemma-4-12B-it-Q4_0.gguf", chat("gemma4"))
        tree.put("one/mmproj-F16.gguf", CLIP)
        tree.put("two/Gemma-4-12B-it-Q8_0.gguf", chat("gemma4"))
        tree.put("two/Gemma-4-12B-it-F16.gguf", chat("gemma4", vocab_size=7))
        rows = tree.rows("one", "two")
        assert tree.shown(rows["gemma-4-12b-it-q8_0"].mmproj_path) == "one/mmproj-F16.gguf"
        assert rows["gemma-4-12b-it-f16"].mmproj_path == ""

    def test_an_unreadable_model_inherits_nothing(self, tree: Tree) -> None:
        tree.put("one/M-7B-Q4_0.gguf")
        tree.put("one/mmproj-F16.gguf", CLIP)
        tree.put("two/M-7B-Q8_0.gguf", MalformedHeader("bad", "bad"))
        assert tree.rows()["m-7b-q8_0"].mmproj_path == ""


class TestRoots:
    def test_overlapping_roots_serve_a_file_once_and_the_first_wins(self, tree: Tree) -> None:
        tree.put("all/image/flux1-dev-Q8_0.gguf", Header(architecture="flux"))
        (row,) = tree.found("all", Root("all/image", "image")).rows
        assert row.root == str(tree.base / "all")

    def test_the_same_bytes_through_a_link_are_one_row(self, tree: Tree) -> None:
        real = tree.put("real/M-Q8_0.gguf")
        (tree.base / "links").mkdir()
        (tree.base / "links/M-Q8_0.gguf").symlink_to(real)
        tree.headers[str(tree.base / "links/M-Q8_0.gguf")] = chat()
        assert len(tree.found("links", "real").rows) == 1

    def test_category_comes_from_the_class_and_from_the_root_when_unknown(self, tree: Tree) -> None:
        tree.put("v/flux1-Q8_0.gguf", Header(architecture="flux"))
        tree.put("v/broken.gguf", MalformedHeader("bad", "bad"))
        rows = tree.rows(Root("v", "video"))
        assert (rows["flux1-q8_0"].category, rows["broken"].category) == ("image", "video")


class TestHubCache:
    def put(self, tree: Tree, commit: str, name: str, blob: str) -> None:
        path = tree.base / "models--Qwen--Qwen3-8B-GGUF/snapshots" / commit / name
        path.parent.mkdir(parents=True, exist_ok=True)
        target = tree.base / "models--Qwen--Qwen3-8B-GGUF/blobs" / blob
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b"x" * 1234)
        path.symlink_to(os.path.relpath(target, path.parent))
        tree.headers[str(path)] = chat()

    def test_names_come_from_the_cache_folder_and_sizes_from_the_blobs(self, tree: Tree) -> None:
        self.put(tree, "abc", "sub/Qwen3-8B-Q8_0.gguf", "b1")
        (row,) = tree.found().rows
        assert (row.publisher, row.repo, row.size_bytes) == ("Qwen", "Qwen3-8B-GGUF", 1234)

    def test_the_snapshot_that_main_names_counts(self, tree: Tree) -> None:
        self.put(tree, "aaa", "Qwen3-8B-Q8_0.gguf", "b1")
        self.put(tree, "bbb", "Qwen3-8B-Q8_0.gguf", "b2")
        refs = tree.base / "models--Qwen--Qwen3-8B-GGUF/refs"
        refs.mkdir()
        (refs / "main").write_text("bbb")
        inventory = tree.found()
        (row,) = inventory.rows
        assert "/bbb/" in row.full_path
        assert [item.kind for item in inventory.dropped] == ["older-snapshot"]

    def test_a_reference_to_a_snapshot_that_is_not_there_hides_nothing(self, tree: Tree) -> None:
        self.put(tree, "aaa", "Qwen3-8B-Q8_0.gguf", "b1")
        refs = tree.base / "models--Qwen--Qwen3-8B-GGUF/refs"
        refs.mkdir()
        (refs / "main").write_text("zzz")
        assert len(tree.found().rows) == 1


class TestFolders:
    def test_model_folder(self, tree: Tree) -> None:
        tree.put("org/Qwen3-8B/config.json")
        tree.put("org/Qwen3-8B/model-00001-of-00002.safetensors", size_bytes=100)
        tree.put("org/Qwen3-8B/model-00002-of-00002.safetensors", size_bytes=50)
        tree.put("org/Qwen3-8B/gguf/Qwen3-8B-Q8_0.gguf")
        tree.folder("org/Qwen3-8B", Header(format="hf", architecture="qwen3", quant_label="BF16"))
        rows = tree.rows()
        row = rows["qwen3-8b-bf16"]
        assert (row.publisher, row.repo, row.base_id, row.quant) == ("org", "Qwen3-8B", "qwen3-8b", "BF16")
        assert (row.model_class, row.is_hf, row.size_bytes, row.missing_shards) == ("hf", True, 150, ())
        assert "qwen3-8b-q8_0" in rows

    def test_missing_part_of_a_model_folder(self, tree: Tree) -> None:
        tree.put("o/m/config.json")
        tree.put("o/m/model-00001-of-00002.safetensors")
        tree.folder("o/m", Header(format="hf", architecture="qwen3"))
        (row,) = tree.found().rows
        assert (row.shard_count, row.missing_shards) == (2, (2,))

    def test_a_folder_whose_config_names_no_model_is_silent(self, tree: Tree) -> None:
        tree.put("o/m/config.json")
        tree.put("o/m/model.safetensors")
        tree.folder("o/m", SourceUnreadable("not-a-model", "no generative architecture"))
        inventory = tree.found()
        assert (inventory.rows, inventory.findings) == ((), ())

    def test_component_folders_of_a_pipeline_are_no_models(self, tree: Tree) -> None:
        tree.put("flux/model_index.json")
        tree.put("flux/text_encoder/config.json")
        tree.put("flux/text_encoder/model.safetensors")
        assert tree.found().rows == ()

    def test_package_folder_swallows_what_lies_inside(self, tree: Tree) -> None:
        tree.put("T/TRELLIS.2-4B/pipeline.json", size_bytes=5)
        tree.put("T/TRELLIS.2-4B/ckpts/a.safetensors", size_bytes=1000)
        tree.put("T/TRELLIS.2-4B/extra/m.gguf")
        tree.put("T/TRELLIS.2-4Bigger/m.gguf")
        inventory = tree.found()
        assert [(row.id, row.model_class, row.size_bytes) for row in inventory.rows] == [
            ("m", "llm", 10),
            ("trellis-2-4b", "3d", 1015),
        ]
        assert reasons(inventory) == {"m.gguf": "inside-package"}

    def test_a_pipeline_without_checkpoints_is_no_package(self, tree: Tree) -> None:
        tree.put("p/pipeline.json")
        tree.put("p/m.gguf")
        assert [row.id for row in tree.found().rows] == ["m"]


class TestAudioPackages:
    def test_parts_are_folded_into_one_row_for_each_complete_quant(self, tree: Tree) -> None:
        folder = "minimax-music3-gguf"
        blank = Header(architecture="")
        tree.put(f"{folder}/vocoder.gguf", Header(audio_family="minimax_music3"), 1)
        for name in ("language_model_q8_0", "transformer_q8_0", "rvq_depth_decoder_q8_0", "language_model_q4_0"):
            tree.put(f"{folder}/{name}.gguf", blank, 10)
        inventory = tree.found()
        (row,) = inventory.rows
        assert (row.id, row.model_class, row.category) == ("minimax-music3-q8_0", "audiocpp", "music")
        assert row.size_bytes == 31
        assert tree.shown(row.full_path) == f"{folder}/language_model_q8_0.gguf"
        assert reasons(inventory)["language_model_q4_0.gguf"] == "package-part"

    def test_no_complete_quant_is_a_finding(self, tree: Tree) -> None:
        tree.put("mm/vocoder.gguf", Header(audio_family="minimax_music3"))
        inventory = tree.found()
        assert inventory.rows == ()
        assert "no complete quant" in inventory.findings[0].text

    def test_a_song_model_has_its_decoder_with_it(self, tree: Tree) -> None:
        tree.put("y/yue2-3b-q8_0.gguf", Header(audio_family="yue2"), 30)
        tree.put("y/yue2-vae-f16.gguf", Header(), 5)
        (row,) = tree.found().rows
        assert [tree.shown(part.path) for part in row.shards] == ["y/yue2-3b-q8_0.gguf", "y/yue2-vae-f16.gguf"]
        assert (row.id, row.base_id, row.size_bytes) == ("yue2-3b-q8_0", "yue2-3b", 35)

    def test_a_song_model_without_its_decoder_is_a_finding(self, tree: Tree) -> None:
        path = tree.put("y/yue2-3b-q8_0.gguf", Header(audio_family="yue2"))
        inventory = tree.found()
        assert inventory.findings[0].path == str(path)
        assert [row.model_class for row in inventory.rows] == ["audiocpp"]
        assert "needs its companion" in inventory.findings[0].text


def test_two_steps_give_the_same_as_one(tree: Tree) -> None:
    tree.put("a/M-7B-Q8_0.gguf")
    tree.put("a/mmproj-F16.gguf", CLIP)
    tree.put("b/M-7B-Q4_0.gguf", MalformedHeader("bad", "bad"))
    listing = list_files([str(tree.base)], platform="linux")
    results = {item.path: tree.headers[item.path] for item in select(listing).candidates}
    assert discover(listing, reader_of(results)) == tree.found()


def test_skip_patterns_match_bare_names(tree: Tree) -> None:
    tree.put("a/keep-7b.gguf")
    tree.put("a/Draft-7b.gguf")
    inventory = discover(list_files([str(tree.base)], platform="linux"), tree.header_of, ["draft-*"])
    assert [row.id for row in inventory.rows] == ["keep-7b"]


ZOO_MODELS = (
    "gemma3-1b-q8_0",
    "llama33-70b-q4_k_m",
    "nomic-embed-text-v1.5-f16",
    "qwen3-0.6b-q8_0",
    "qwen3-30b-a3b-q4_k_m",
    "lfm2-1.2b-q8_0",
)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    for name in ZOO_MODELS:
        write_model(name, str(folder))
    return folder


class TestRealHeaders:
    """The same through the real readers, on files with the headers of published models."""

    def test_ids_classes_and_sets(self, zoo: Path) -> None:
        inventory = discover(list_files([str(zoo)], platform="linux"), read_header)
        assert inventory.findings == ()
        assert [(row.id, row.model_class, row.quant, row.shard_count) for row in inventory.rows] == [
            ("gemma3-1b-q8_0", "llm", "Q8_0", 1),
            ("lfm2-1.2b-q8_0", "llm", "Q8_0", 1),
            ("llama33-70b-q4_k_m", "llm", "Q4_K_M", 3),
            ("nomic-embed-text-v1.5-f16", "embedding", "F16", 1),
            ("qwen3-0.6b-q8_0", "llm", "Q8_0", 1),
            ("qwen3-30b-a3b-q4_k_m", "llm", "Q4_K_M", 1),
        ]

    def test_size_of_a_set_is_that_of_its_files(self, zoo: Path) -> None:
        rows = {row.id: row for row in discover(list_files([str(zoo)], platform="linux"), read_header).rows}
        parts = sorted(zoo.glob("llama33-70b*"))
        assert rows["llama33-70b-q4_k_m"].size_bytes == sum(part.stat().st_size for part in parts)

    def test_a_set_with_a_gap_and_a_cut_file(self, tmp_path: Path) -> None:
        first, second, _ = (Path(path) for path in write_model("llama33-70b-q4_k_m", str(tmp_path)))
        second.unlink()
        small = Path(write_model("gemma3-1b-q8_0", str(tmp_path))[0])
        os.truncate(small, 1000)
        inventory = discover(list_files([str(tmp_path)], platform="linux"), read_header)
        rows = {row.id: row for row in inventory.rows}
        assert rows["llama33-70b-q4_k_m"].missing_shards == (2,)
        assert rows["gemma3-1b-q8_0"].model_class == ""
        assert {(finding.kind, finding.path) for finding in inventory.findings} == {
            ("shards-missing", str(first)),
            ("header-unreadable", str(small)),
        }
