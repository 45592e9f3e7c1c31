"""Imports with a past and neighbours: other programs, two entries of a file, races, presets, hostile files."""

from __future__ import annotations

import pytest

from gpus_app.models import Backend, Host
from models_app.core.imports.meaning import differences, meaning_of
from models_app.core.imports.report import Kind, Status
from models_app.models import Fragment, ImportBatch, Override, Row, Variant
from models_app.services import save_override
from models_app.services.fragments import save_fragment
from models_app.services.import_applying import Choice, start_apply
from models_app.services.import_undoing import changed_since, undo_import
from quartermaster_site.errors import Refused
from tests.models.import_cases import items, meaning, models, written

PORT = "${PORT}"


@pytest.fixture
def alpha(folder):
    return folder / "alpha-1b-Q4_0.gguf"


@pytest.fixture
def beta(folder):
    return folder / "beta-2b-Q4_0.gguf"


def entry(path, *words, program="llama-server", **keys):
    return {"cmd": f"{program} -m {path} --port {PORT} {' '.join(words)}".strip(), **keys}


def test_another_executable_is_registered_and_used(scanned, host, alpha, bring_in, take_over):
    batch = bring_in({"models": {"a": entry(alpha, "-c 4096", program="/opt/llama/bin/llama-server")}})
    (program,) = items(batch, kind=Kind.BACKEND)
    assert (program.target.subject, program.value["kind"]) == ("/opt/llama/bin/llama-server", "llama")
    assert models(batch)["a"]["after"]["exact"] == models(batch)["a"]["before"]
    batch = take_over(batch)
    assert batch.state == "applied", batch.problem
    backend = Backend.objects.get()
    assert Override.objects.get(match=str(alpha)).fields["backend"] == backend.slug
    assert written(host)["models"]["a"]["cmd"][0] == "/opt/llama/bin/llama-server"


def test_a_command_without_its_executable_is_refused_as_a_whole(scanned, alpha, bring_in, take_over):
    batch = bring_in({"models": {"a": entry(alpha, "-c 4096", program="/opt/llama/bin/llama-server")}})
    batch = take_over(batch, sections=frozenset({"models"}))
    assert batch.state == "read"
    assert "tick it among the executables" in batch.problem
    assert not Override.objects.exists()
    assert take_over(batch).state == "applied"


def test_entries_of_one_file_become_variants_with_their_ids(scanned, host, alpha, beta, bring_in, take_over):
    config = {
        "models": {
            "small": entry(alpha, "-c 4096", ttl=0),
            "small-long": entry(alpha, "-c 16384", ttl=0, aliases=["long"]),
            "coder": entry(alpha, "--temp 0", unlisted=True),
            "b": entry(beta),
        }
    }
    batch = bring_in(config)
    assert [found["variant"] for found in models(batch).values()] == ["", "long", "coder", ""]
    batch = take_over(
        batch,
        items=[n for n, item in enumerate(items(batch)) if item.section == "elsewhere"],
        sections={
            "models",
            "top",
            "backends",
            "elsewhere",
        },
    )
    assert batch.state == "applied", batch.problem
    assert differences(meaning(config), written(host)) == []
    assert {variant.name for variant in Variant.objects.all()} == {"long", "coder"}


def test_an_entry_of_the_same_file_that_no_variant_can_be_is_kept_raw(scanned, alpha, bring_in):
    batch = bring_in({"models": {"a": entry(alpha, ttl=1), "b": entry(alpha, ttl=2)}})
    assert models(batch)["b"]["way"] == "raw"
    assert "idle time" in models(batch)["b"]["reason"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("llama-server -m /elsewhere/x.gguf --port ${PORT}", "lies in no folder of this host"),
        ("llama-server -hf org/model --port ${PORT}", "names no model file"),
        ("llama-server -m {alpha} --port 9000", "does not take the router's port"),
        ("llama-server -m {alpha} --port ${PORT} --api-key ${env.KEY}", "only the router can replace"),
        ("llama-server -m '{alpha} --port ${PORT}", "No closing quotation"),
        ("", "it has no command"),
    ],
)
def test_what_cannot_be_ours_is_kept_as_it_is(scanned, host, alpha, bring_in, take_over, command, reason):
    given = {"cmd": command.replace("{alpha}", str(alpha)), "proxy": "http://127.0.0.1:9000"}
    batch = bring_in({"models": {"x": given}})
    assert models(batch)["x"]["way"] == "raw"
    assert reason.lower() in models(batch)["x"]["reason"].lower()
    take_over(batch)
    assert Fragment.objects.get(served_id="x").fields == given


def test_as_settings_known_flags_become_fields(scanned, alpha, bring_in, take_over):
    words = ["-c 8192", "-np 2", "--temp 0.7", "-ub 256", "--mlock", "--seed 7", "--jinja", "--reasoning-budget 0"]
    batch = take_over(bring_in({"models": {"a": entry(alpha, *words)}}), way="settings")
    stored = Override.objects.get(match=str(alpha)).fields
    assert {key: stored[key] for key in ("parallel", "temp", "ub")} == {"parallel": 2, "temp": 0.7, "ub": 256}
    assert stored["customArgs"].split() == ["--mlock", "--seed", "7", "--reasoning-budget", "0"]
    assert "ctx" not in stored  # two slots of 4,096 are what is planned here
    assert batch.state == "applied"


def test_what_is_set_here_stays_unless_it_is_ticked(
    scanned,
    alpha,
    actor,
    bring_in,
    take_over,
    django_capture_on_commit_callbacks,
):
    row = Row.objects.get(path=str(alpha))
    with django_capture_on_commit_callbacks(execute=True):
        save_override(row=row, values={"ttlSec": 5}, version=0, actor=actor)
    batch = bring_in({"models": {"a": entry(alpha, ttl=60)}})
    (conflict,) = items(batch, Status.CONFLICT)
    assert (conflict.value, conflict.ours) == (60, 5)
    take_over(batch)
    assert Override.objects.get().fields["ttlSec"] == 5
    again = bring_in({"models": {"a": entry(alpha, ttl=60)}})
    number = next(n for n, item in enumerate(items(again)) if item.status == Status.CONFLICT)
    with django_capture_on_commit_callbacks(execute=True):
        start_apply(batch=again, choice=Choice(frozenset({"models"}), {"a": "same"}, frozenset({number})), actor=actor)
    assert Override.objects.get().fields["ttlSec"] == 60


def test_what_changed_since_the_report_stops_all_of_it(scanned, alpha, beta, actor, bring_in, take_over):
    batch = bring_in({"models": {"a": entry(alpha, ttl=60), "b": entry(beta, ttl=60)}})
    save_override(row=Row.objects.get(path=str(beta)), values={"ttlSec": 5}, version=0, actor=actor)
    batch = take_over(batch)
    assert batch.state == "read"
    assert "was set here since" in batch.problem
    assert not Override.objects.filter(match=str(alpha)).exists()


def test_undo_stops_where_somebody_changed_a_row(scanned, alpha, beta, actor, bring_in, take_over):
    batch = take_over(bring_in({"logLevel": "warn", "models": {"a": entry(alpha, ttl=60), "b": entry(beta, ttl=60)}}))
    row = Row.objects.get(path=str(beta))
    save_override(row=row, values={"ttlSec": 5}, version=Override.objects.get(match=row.path).version, actor=actor)
    assert changed_since(batch) == [str(beta)]
    with pytest.raises(Refused, match="Nothing was undone"):
        undo_import(batch=batch, actor=actor)
    assert Override.objects.get(match=str(alpha)).fields["ttlSec"] == 60
    assert Fragment.objects.exists()


def test_undo_keeps_fragments_that_were_there(scanned, host, alpha, actor, bring_in, take_over):
    save_fragment(host=host, form="yaml", served_id="", fields={"captureBuffer": 1}, version=0, actor=actor)
    batch = take_over(bring_in({"logLevel": "warn", "models": {}}))
    assert Fragment.objects.get().fields == {"captureBuffer": 1, "logLevel": "warn"}
    undo_import(batch=batch, actor=actor)
    assert Fragment.objects.get().fields == {"captureBuffer": 1}
    with pytest.raises(Refused, match="Only an import that was applied"):
        undo_import(batch=batch, actor=actor)


PRESETS = """\
version = 1
[*]
threads = 6
[fast:q4_0]
model = {alpha}
c = 4096
no-jinja = on
alias = quick,fast
sleep-idle-seconds = 60
load-on-startup = true
[far]
hf-repo = org/model
"""


def test_presets_come_in_and_go_out(scanned, host, alpha, bring_in, take_over):
    Host.objects.filter(pk=host.pk).update(publish_dialect="llama-server")
    text = PRESETS.format(alpha=alpha)
    batch = bring_in(text, dialect="auto", name="models.ini")
    assert batch.dialect == "llama-server"
    assert [found["way"] for found in models(batch).values()] == ["exact", "raw"]
    others = [n for n, item in enumerate(items(batch)) if item.section == "elsewhere"]
    batch = take_over(batch, items=others, sections={"models", "top", "elsewhere"})
    assert batch.state == "applied", batch.problem
    assert Override.objects.get(match=str(alpha)).fields["ttlSec"] == 60
    found = differences(meaning_of(text.encode(), "llama-server"), written(host, "llama-server"))
    assert found == []


HOSTILE = {
    "a bomb": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "\n".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]" for n in range(9)),
    "an alias in itself": "a: &a [*a]\n",
    "a tag": "models: !!python/object/apply:os.system ['true']\n",
    "depth": "[" * 200,
    "twice": "models: {}\nmodels: {}\n",
    "two documents": "models: {}\n---\nmodels: {}\n",
    "a list": "- models\n",
    "models that are none": "models: [a, b]\n",
    "macros that grow": "macros:\n"
    + "".join(f"  m{n}: '{'x' * 1000}'\n" for n in range(40))
    + "models:\n"
    + "".join(f"  a{n}: {{cmd: '{'${m1}' * 900}'}}\n" for n in range(60)),
    "a control character": "models: {a: {cmd: \x07}}\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused_with_a_reason(scanned, bring_in, text):
    batch = bring_in(text)
    assert batch.state == "failed"
    assert batch.problem
    assert batch.text == ""


@pytest.mark.parametrize(
    "models_",
    [
        {"a": None, "b": [], "c": 7, "d": {"cmd": 5}, "e": {"cmd": ["x"]}, "f": {"ttl": "soon", "cmd": "x"}},
        {"": {"cmd": "x ${PORT}"}, "a b\n": {"cmd": "x ${PORT}"}, "<script>": {"cmd": "llama-server ${PORT}"}},
        {"a": {"cmd": "x", "env": {"a": 1}, "aliases": "no list", "filters": [], "metadata": "x"}},
    ],
)
def test_odd_entries_are_kept_and_cost_nothing_else(scanned, bring_in, take_over, models_):
    batch = bring_in({"models": models_})
    assert batch.state == "read", batch.problem
    assert {found["way"] for found in models(batch).values()} == {"raw"}
    assert take_over(batch).state == "applied"
    assert ImportBatch.objects.count() == 1


def test_words_of_yaml_1_1_stay_words(scanned, host, alpha, bring_in, take_over):
    text = f"models:\n  on:\n    cmd: llama-server -m {alpha} --port {PORT}\n    description: off\n"
    batch = take_over(bring_in(text))
    assert batch.state == "applied", batch.problem
    assert written(host)["models"]["on"]["description"] == "off"


def test_a_program_that_would_take_the_place_of_others_stays_with_its_entry(
    scanned, host, alpha, beta, bring_in, take_over
):
    """Where none is registered, the first one to be would run every model."""
    config = {"models": {"a": entry(alpha), "b": entry(beta, "-c 4096", program="/opt/llama/llama-server")}}
    batch = bring_in(config)
    assert [found["way"] for found in models(batch).values()] == ["exact", "raw"]
    assert "would change the program" in models(batch)["b"]["reason"]
    take_over(batch)
    now = written(host)["models"]
    assert (now["a"]["cmd"][0], now["b"]["cmd"][0]) == ("llama-server", "/opt/llama/llama-server")
    assert not Backend.objects.exists()


def test_a_program_by_name_is_not_that_of_a_registered_one(scanned, host, alpha, bring_in):
    Backend.objects.create(host=host, slug="llama", kind="llama", path="/opt/a/llama-server")
    batch = bring_in({"models": {"a": entry(alpha)}})
    assert "by its name" in models(batch)["a"]["reason"]


def test_groups_of_a_file_are_new_where_ours_are_only_planned(scanned, alpha, bring_in, take_over, host):
    config = {"models": {"a": entry(alpha)}, "groups": {"x": {"swap": False, "members": ["a"]}}}
    batch = bring_in(config)
    (groups,) = [item for item in items(batch) if item.source == "groups"]
    assert groups.status == Status.NEW
    take_over(batch)
    assert [False, True, False, ["a"]] in written(host)["groups"]
