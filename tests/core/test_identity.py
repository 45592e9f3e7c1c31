"""Names: quant tokens, ids, publishers, served names, labels."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.catalog import Row
from models_app.core.discovery.hostile_names import printable, unsafe_reason
from models_app.core.discovery.identity import cache_owner, gguf_identity, is_quant_token, quant_of
from models_app.core.discovery.ladder import CANDIDATE, COMPONENT, FAST_MTP, file_kind
from models_app.core.discovery.names import free_name, prettify, slugify, strip_quant_crumbs, unique_names
from models_app.core.discovery.roots import CATEGORIES, path_key, root_list
from models_app.core.discovery.shards import shard_name, strip_shard

QUANTS = """
Q1_0 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q2_K_S Q3_K Q3_K_S Q3_K_M Q3_K_L Q4_K Q4_K_S Q4_K_M Q5_K Q5_K_S Q5_K_M Q6_K
IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ3_XXS IQ3_XS IQ3_S IQ3_M IQ4_NL IQ4_XS IQ1_KT IQ2_KL IQ3_K IQ4_KS IQ4_KSS IQ5_K
Q4_K_XL Q4_K_XXL Q4_0_4_4 Q4_0_8_8 IQ4_NL_4_4 Q4_K_P Q4_K_R4 TQ1_0 TQ2_0 FP8 FP16 MXFP4 MXFP4_MOE NVFP4 BF16 F16 F32
FP8_E4M3
"""
WORDS = """
awq gptq exl2 exl3 w4a16 qwen3.8 27b a3b mtp dflash instruct it v2 mid high vision 32k e4b coder uncensored gguf moe
preserved abliterated 2507 f5 bf8 fp6 q t5 f
"""


@pytest.mark.parametrize("token", QUANTS.split())
def test_quant_tokens_in_either_case(token: str) -> None:
    assert is_quant_token(token)
    assert is_quant_token(token.lower())
    assert quant_of(f"model-7b.{token.lower()}.gguf") == token


@pytest.mark.parametrize("word", WORDS.split())
def test_words_are_no_quants(word: str) -> None:
    assert not is_quant_token(word)
    assert not is_quant_token(word.upper())


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("audio-f5-tts.gguf", ""),
        ("Model-Q8_0_v2.gguf", "Q8_0"),
        ("Model-Q8_0 (1).gguf", "Q8_0"),
        ("Model Q4_K_M.gguf", "Q4_K_M"),
        ("Q4_0.gguf", ""),
        ("Foo-BF16-v2-Q4_0.gguf", "BF16"),
        ("Model-Q4_K_M_fixed.gguf", "Q4_K_M"),
    ],
)
def test_bounds_of_a_quant_in_a_file_name(name: str, quant: str) -> None:
    assert quant_of(name) == quant


@pytest.mark.parametrize(
    ("path", "model_id", "base_id"),
    [
        ("Qwen3.8-27B-UD-Q4_K_XL.gguf", "qwen3.8-27b-ud-q4_k_xl", "qwen3.8-27b-ud"),
        ("Kokoro_espeak_f16.gguf", "kokoro_espeak-f16", "kokoro_espeak"),
        ("Model-Q4_K_M-GGUF.gguf", "model-q4_k_m", "model-q4_k_m"),
        ("My Model Q8_0.gguf", "my-model-q8_0", "my-model"),
        ("Model-Q8_0 (1).gguf", "model-q8_0-(1)", "model-q8_0-(1)"),
        ("-Q4_0.gguf", "-q4_0", "-q4_0"),
    ],
)
def test_ids(path: str, model_id: str, base_id: str) -> None:
    found = gguf_identity(path)
    assert (found.id, found.base_id) == (model_id, base_id)


@given(st.text(alphabet=string.ascii_letters + string.digits + "-_. ()'\"", max_size=40))
def test_any_name_gives_an_id_without_blanks_or_upper_case(stem: str) -> None:
    found = gguf_identity(f"owner/repo/{stem}x.gguf")
    assert found.id
    assert found.id == found.id.lower()
    assert not any(character.isspace() for character in found.id)
    assert found.quant.lower() in found.id
    assert (found.publisher, found.repo) == ("owner", "repo")


@pytest.mark.parametrize(
    ("folder", "owner"),
    [
        ("/hub/models--Qwen--Qwen3-4B--Instruct/snapshots/abc", ("Qwen", "Qwen3-4B--Instruct")),
        ("/hub/models--Qwen--Qwen3-4B/Snapshots/abc/sub/deep", ("Qwen", "Qwen3-4B")),
        ("/hub/models--Qwen--Qwen3-4B/snapshots", None),
        ("/hub/models----x/snapshots/abc", None),
        ("/hub/models--x--/snapshots/abc", None),
        ("/hub/models--x/snapshots/abc", None),
        ("/hub/datasets--a--b/snapshots/abc", None),
    ],
)
def test_hub_cache_owner(folder: str, owner: tuple[str, str] | None) -> None:
    assert cache_owner(folder) == owner


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fastmtp-head.gguf", FAST_MTP),
        ("x.fast_mtp.gguf", FAST_MTP),
        ("Qwen-Native-MTP-Preserved-Q4_0.gguf", CANDIDATE),
        ("ae.gguf", COMPONENT),
        ("my.ae.v2.gguf", COMPONENT),
        ("taesd_decoder.gguf", COMPONENT),
        ("a-withproj-b.gguf", COMPONENT),
        ("encoder-only.gguf", CANDIDATE),
        ("my-encoder.gguf", COMPONENT),
        ("projector-test.gguf", CANDIDATE),
        ("vaelike-7b.gguf", CANDIDATE),
        ("clip-vit-l.gguf", CANDIDATE),
        (".gguf", CANDIDATE),
    ],
)
def test_kinds_by_name(name: str, kind: str) -> None:
    assert file_kind(name) == kind


def test_shard_suffix_in_any_case() -> None:
    shard = shard_name("M-00002-OF-00003.GGUF")
    assert shard is not None
    assert (shard.number, shard.count, shard.whole_name) == (2, 3, "M.GGUF")
    assert strip_shard("M-1-of-3.gguf") == "M-1-of-3.gguf"
    assert shard_name("M-00001-of-00002.gguf.part") is None


@given(st.text())
def test_slugs_are_safe(text: str) -> None:
    slug = slugify(text)
    assert set(slug) <= set(string.ascii_lowercase + string.digits + "-")
    assert slug == slug.strip("-") == slugify(slug)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "p", "q"]), st.sampled_from(["", "r"]))))
def test_served_names_are_unique_and_skip_taken_ones(cases: list[tuple[str, str, str]]) -> None:
    rows = [Row(id=one, full_path="", publisher=publisher, repo=repo) for one, publisher, repo in cases]
    names = unique_names(rows, {"a"})
    assert len(set(names)) == len(rows)
    assert "a" not in names


def test_a_taken_profile_name_is_avoided() -> None:
    row = Row(id="m-32k", full_path="", publisher="pub")
    assert free_name(row, {"m-32k"}) == "m-32k-pub"


def test_labels() -> None:
    assert prettify("gemma-3-12b_it") == "Gemma 3 12b It"
    assert prettify("--") == ""
    assert strip_quant_crumbs("Qwen3.6 27b UD Q4 K XL") == "Qwen3.6 27b"
    assert strip_quant_crumbs("Q8") == "Q8"


def test_roots_are_trimmed_and_unique_by_platform() -> None:
    folders = {"image": " /srv/models ", "llm": "", "video": "/srv/Models"}
    assert [root.path for root in root_list("/srv/Models", folders, "linux")] == ["/srv/Models", "/srv/models"]
    assert [root.path for root in root_list("/srv/Models", folders, "darwin")] == ["/srv/Models"]
    assert root_list(" ", {}, "linux") == ()
    assert len(set(CATEGORIES)) == len(CATEGORIES)


def test_separators_fold_on_windows_only() -> None:
    assert path_key("C:\\M\\a.gguf", "windows") == path_key("c:/m/A.GGUF", "windows")
    assert path_key("a\\b", "linux") != path_key("a/b", "linux")


@given(st.text())
def test_printable_text_is_one_line_of_valid_unicode(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    assert not unsafe_reason(shown.replace("${", ""))


@given(st.binary(max_size=30))
def test_any_bytes_of_a_name_can_be_shown(raw: bytes) -> None:
    printable(raw.decode("utf-8", "surrogateescape")).encode("utf-8")
