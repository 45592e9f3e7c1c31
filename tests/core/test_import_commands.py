"""Commands of a file as ours: word for word, or as fields with the rest in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.imports.as_settings import as_settings, chunks, whole_text
from models_app.core.imports.router_file import dialect_of, read_router_file
from models_app.core.launch.compose import compose
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import POSIX, WINDOWS

KEYS = {field.key for field in OVERRIDE_FIELDS}
PLUMBING = ("-m", "/m/a b.gguf", "--port", "${PORT}")
LINES = ["llama-server", '-m "/m/a b.gguf"', "--port ${PORT}", "--host 127.0.0.1", "-ngl 99 -c 4096", "--metrics"]
WORDS = st.one_of(
    st.sampled_from(["-c", "-ngl", "--temp", "--lora-scaled", "--jinja", "--unknown", "4096", "-1", "#x", "a#b", "-"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(str.strip),
    st.text(" \t\"'\\{}$|#;=,ab", max_size=8),
)


def composed(argv, table=LLAMA, lines=LINES, plumbing=PLUMBING, rules=POSIX):
    return compose(table, lines, whole_text(argv, plumbing, table, rules), rules, alone=True).argv


@given(st.lists(WORDS, max_size=12))
def test_a_command_comes_back_word_for_word(words):
    argv = ("llama-server", *PLUMBING, *words)
    assert composed(argv) == argv


@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=8))
def test_wherever_model_and_port_stand(before, behind):
    argv = ("llama-server", *before, "--jinja", "--port", "${PORT}", "--model", "/m/a b.gguf", *behind)
    if chunks(LLAMA, before + ["--jinja"])[-1].words != ("--jinja",):
        return  # the last word before takes what follows as its value
    assert composed(argv) == argv


def test_what_we_write_ourselves_is_left_to_us():
    assert whole_text(("llama-server", *PLUMBING, "-c", "8"), PLUMBING, LLAMA, POSIX) == "-c 8"


def test_a_bare_command_still_has_a_text():
    argv = ("llama-server", *PLUMBING)
    assert whole_text(argv, PLUMBING, LLAMA, POSIX) == '-m "/m/a b.gguf"\n--port ${PORT}'
    assert composed(argv) == argv


def test_a_second_model_flag_keeps_its_place():
    argv = ("llama-server", *PLUMBING, "-m", "/other.gguf")
    assert composed(argv) == argv


def test_commands_of_sd_server_and_windows():
    plumbing = ("--diffusion-model", "C:/m/x y.gguf", "--listen-port", "${PORT}")
    lines = ["sd-server", '--diffusion-model "C:/m/x y.gguf"', "-l 127.0.0.1", "--listen-port ${PORT}", "--steps 4"]
    argv = ("sd-server", *plumbing, "--vae", "C:\\vae\\a b\\", "-H", "512")
    assert composed(argv, SD, lines, plumbing, WINDOWS) == argv


def read_as_settings(*words, planned=("llama-server", "-c", "4096", "-ngl", "99", "--jinja", "--parallel", "1")):
    found = as_settings(LLAMA, ("llama-server", *PLUMBING, *words), planned, KEYS, POSIX)
    return dict(found.values), found.text


def test_what_is_planned_anyway_goes_away():
    assert read_as_settings("--ctx-size", "4096", "--n-gpu-layers", "99", "--jinja") == ({}, "")


def test_fields_say_what_they_can_and_the_rest_keeps_its_order():
    values, text = read_as_settings(
        "--seed", "1", "-c", "8192", "--temp", "0.5", "-ngl", "12", "--mlock", "--foo", "b c"
    )
    assert values == {"ctx": 8192, "temp": 0.5}
    assert text == '--seed 1\n-ngl 12\n--mlock\n--foo "b c"'


def test_a_value_that_no_field_holds_stays_text():
    assert read_as_settings("-c", "5000") == ({}, "-c 5000")
    assert read_as_settings("-c", "0") == ({}, "-c 0")
    assert read_as_settings("-ub", "nine", "--temp", "99") == ({}, "-ub nine\n--temp 99")
    assert read_as_settings("--temp", "1", "--temp", "2") == ({}, "--temp 1\n--temp 2")


def test_a_window_is_shared_by_its_slots():
    assert read_as_settings("-c", "16384", "-np", "2") == ({"ctx": 8192, "parallel": 2}, "")
    assert read_as_settings("-c", "12288", "-np", "2")[1] == "-c 12288"


def test_the_kind_of_a_file_is_seen():
    assert dialect_of("x", b"; hi\n[a]\nmodel = /x\n") == "llama-server"
    assert dialect_of("models.ini", b"") == "llama-server"
    assert dialect_of("config.yaml", b"models: {a: {cmd: x}}") == "llama-swap"
    assert dialect_of("config.yaml", b"vramBudgetGB: 3\nmodels: {}") == "quartermaster"
    assert dialect_of("config.yaml", b"models: {a: {cmd: x, estVramGB: 2}}") == "quartermaster"
    assert dialect_of("config.yaml", b"models: [") == "llama-swap"


def test_macros_of_a_model_win_and_lines_of_comment_go():
    text = """
macros: {bin: llama-server, n: 1}
models:
  a:
    macros: {n: 2}
    cmd: |
      # the small one
      ${bin} --port ${PORT}
      -m /m/${MODEL_ID}.gguf \\
      -c ${n}
"""
    (entry,) = read_router_file(text.encode(), "llama-swap").entries
    assert entry.argv == ("llama-server", "--port", "${PORT}", "-m", "/m/a.gguf", "-c", "2")
    assert (entry.line, entry.line_of("cmd"), entry.path) == (4, 6, "/m/a.gguf")
