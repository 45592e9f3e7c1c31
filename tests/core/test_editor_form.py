"""Texts of controls and values: what is typed is read back, refused by name, or means nothing; it never raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.fields import OVERRIDE_FIELDS, VARIANT_FIELDS
from models_app.core.fields.groups import GROUPS, grouped, model_fields, variant_fields
from models_app.core.launch.findings import text_findings
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.locks import locked_fields
from models_app.core.settings import override_from_mapping, record_to_mapping
from models_app.core.state.checks import Limits
from models_app.core.state.typed import control_text, read

LIMITS = Limits(trained_tokens=40_960, block_count=36, device_count=2)
FIELDS = {field.key: field for field in OVERRIDE_FIELDS}
FORM = model_fields("llm", "llama")


def read_one(key: str, text: str, limits: Limits = LIMITS, **others: str):
    fields = [FIELDS[name] for name in (key, *others)]
    return read(fields, {key: text, **others}, limits)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("ctx", "32k", 32768),
        ("ctx", " 32,768 ", 32768),
        ("ctx", "", 0),
        ("temp", "0", 0.0),
        ("temp", "0,7", 0.7),
        ("topK", "", None),
        ("dry", "off", False),
        ("dry", "", None),
        ("mlock", "on", True),
        ("ctxVariants", "8k, 16384; 8192", (8192, 16384)),
        ("flashAttn", "ON", "on"),
        ("chatTemplateFile", "  /srv/a b.jinja ", "/srv/a b.jinja"),
        ("cacheRamMB", "-1", -1),
        ("loras", "a.gguf\nC:\\b.gguf : 0\n", [{"path": "a.gguf"}, {"path": "C:\\b.gguf", "scale": 0.0}]),
    ],
)
def test_texts_mean_values(key, text, value):
    reading = read_one(key, text)
    assert (reading.values, reading.errors) == ({key: value}, {})


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("ctx", "65536", "trained for 40,960 tokens: give less, or switch RoPE scaling on"),
        ("ctx", "100", "4,096 to 40,960 tokens"),
        ("cpuOffload", "37", "1 to 36 layers"),
        ("mainGpu", "2", "0 to 1"),
        ("tensorSplit", "1,2,3", "this host has 2 devices"),
        ("tensorSplit", "0,0", "at least one share"),
        ("tensorSplit", "1,-1", "numbers of 0 or more"),
        ("overrideTensor", "ffn", "pattern=buffer"),
        ("spec", "draft-mtp+ngram", "ngram is not known"),
        ("spec", "none+ngram-mod", "none stands alone"),
        ("topP", "1.5", "0 to 1"),
        ("temp", "1e", "You typed “1e”"),
        ("ub", "x", "Accepted is 32 to 16,384 tokens"),
        ("reasoningFmt", "a\tb", "one line"),
        ("vramTargetGB", "1" + "0" * 30, "up to 65,536 GiB"),
    ],
)
def test_refusals_name_field_range_and_way_out(key, text, words):
    message = read_one(key, text).errors[key]
    assert message.startswith(FIELDS[key].label)
    assert words in message


@pytest.mark.parametrize(("device", "refused"), [("", True), ("cpu", False)])
def test_a_model_on_the_gpu_cannot_be_in_the_cpu_group(device, refused):
    reading = read([FIELDS["device"], FIELDS["swapGroup"]], {"device": device, "swapGroup": "cpu"}, Limits())
    assert ("Set Device to CPU first" in reading.errors.get("swapGroup", "")) is refused


def test_rope_scaling_lifts_the_ceiling_eightfold():
    assert read_one("ctx", "64k", ropeScaling="yarn").values["ctx"] == 65536
    assert "8 times" in read_one("ctx", "400000", ropeScaling="yarn").errors["ctx"]
    assert "ctx" in read_one("ctx", "64k", ropeScaling="none").errors


@given(st.sampled_from(sorted(FIELDS)), st.text(max_size=60))
def test_nothing_typed_raises(key, text):
    reading = read_one(key, text)
    assert set(reading.values) | set(reading.errors) >= {key}


@given(st.dictionaries(st.sampled_from([field.key for field in FORM]), st.text(max_size=12)))
def test_what_was_read_reads_back_the_same(typed):
    """The form shows what is stored: saving it again changes nothing."""
    values = read(FORM, typed, LIMITS).values
    texts = {field.key: control_text(field, values[field.key]) for field in FORM if field.key in values}
    again = read([FIELDS[key] for key in texts], texts, LIMITS)
    assert {key: again.values[key] for key in texts if key in again.values} == {
        key: values[key] for key in texts if key in again.values
    }
    assert set(again.errors) <= {"ctx", "ctxVariants"}, "only a window may depend on another field"
    stored = record_to_mapping(override_from_mapping(values))
    assert all(FIELDS[key].is_set(values[key]) for key in stored)


def test_every_field_of_a_form_has_a_group():
    assert {field.group for field in (*OVERRIDE_FIELDS, *VARIANT_FIELDS)} <= {*GROUPS, "identity", "variants"}
    assert sum(len(fields) for fields in grouped(FORM).values()) == len(FORM)


def test_fields_follow_class_and_backend():
    keys = {field.key for field in FORM}
    assert {"ctx", "temp", "tensorSplit"} <= keys
    assert not keys & {"vaePath", "vllmGpuUtil", "audioDevice", "customArgs", "match", "variants"}
    assert {"vaePath", "defaultSteps"} <= {field.key for field in model_fields("image", "sd")}
    assert "temp" not in {field.key for field in model_fields("llm", "vllm")}
    names = {field.key for field in variant_fields("llm", "llama")}
    assert not names & {"backend", "device", "mmproj", "customArgs", "ctxVariants", "name"}
    twin = {field.key for field in variant_fields("llm", "llama", vision=True, arguments=True)}
    assert twin == {"ctx", "vramTargetGB", "mmproj", "unlisted"}
    assert "customArgs" in {field.key for field in variant_fields("llm", "llama", arguments=True)}


def test_a_text_locks_what_it_owns():
    text = "-t 12 --mlock -c 8192 -ngl 20 --lora a.gguf --n-cpu-moe 3"
    dense = locked_fields(text, "llama", is_moe=False)
    assert dense["threads"] == "-t 12"
    assert dense["ctx"] == "-c 8192"
    assert dense["cpuOffload"] == "-ngl 20"
    assert {"mmap", "mlock", "directIo"} <= set(dense)
    assert "loras" not in dense
    assert locked_fields(text, "llama", is_moe=True)["cpuOffload"] == "--n-cpu-moe 3"
    assert locked_fields('-t "3', "llama") == {}
    assert locked_fields(text, "vllm") == {}


@pytest.mark.parametrize(
    ("text", "level", "words"),
    [
        ("-m /a.gguf", "warn", "another file"),
        ("--host 0.0.0.0", "warn", "never be reachable"),
        ("--slot-save-path /x", "warn", "snapshots go elsewhere"),
        ("--api-key abc", "warn", "looks like a secret"),
        ("--temp=1", "warn", "write --temp 1"),
        ("--no-such-thing", "warn", "not known to us"),
        ("-t 3 | tee", "note", "No shell"),
        ("llama-server -t 3", "bad", "leave the program out"),
        ("-t 3 4", "bad", "belongs to no flag"),
        ("-t 3 $HOME", "note", "No shell"),
        ("-t '3", "bad", "cannot be taken apart"),
        ("-c 8192", "warn", "Every context tier"),
        ("-t 3", "note", "Owns “Threads”"),
    ],
)
def test_remarks_about_a_text(text, level, words):
    found = text_findings(LLAMA, text, has_tiers=True)
    assert any(finding.level == level and words in finding.text for finding in found), found


def test_with_the_help_of_the_build_unknown_is_an_error_and_known_is_fine():
    helped = text_findings(LLAMA, "--thread 3 --brand-new 1", help_spellings=["--threads", "--brand-new"])
    assert [(finding.level, finding.argument) for finding in helped] == [("bad", "--thread")]
    assert "--threads" in helped[0].suggestions


@given(st.text(max_size=200))
def test_no_text_breaks_the_remarks(text):
    text_findings(LLAMA, text, has_tiers=True)
    locked_fields(text, "llama")
