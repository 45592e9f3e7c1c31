"""Keys of a hand-written file, its variants' programs, and what two spellings of one command mean."""

from __future__ import annotations

import pytest

from gpus_app.services import request_plan
from models_app.core.export.load import load
from models_app.core.imports.meaning import differences, meaning_of
from models_app.models import ApiKey, Fragment, Revision
from models_app.pages.import_page import import_view
from models_app.services import start_write
from models_app.services.api_keys import KeyValues, create_key, revoke_key
from models_app.services.import_sight import ImportSight
from models_app.services.key_export import service_secret
from tests.models.import_cases import items, models

SECRET, NAMED = "sk-hand-written", "${env.CLIENT_KEY}"


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def target(scanned, host, tmp_path):
    host.publish_path, host.publish_dialect = str(tmp_path / "router.yaml"), "llama-swap"
    host.save()
    return tmp_path / "router.yaml"


def keys_on_disk(path):
    return load(path.read_text()).value["apiKeys"]


def test_names_of_keys_stay_in_the_file_beside_keys_of_ours(target, host, actor, bring_in, take_over, do):
    batch = take_over(bring_in({"apiKeys": [SECRET, NAMED], "models": {}}))
    assert batch.state == "applied", batch.problem
    assert Fragment.objects.get(served_id="").fields == {"apiKeys": [NAMED]}, "no secret is stored in clear"
    host.refresh_from_db()
    do(start_write, revision=Revision.objects.order_by("-number").select_related("host").first(), actor=actor)
    assert keys_on_disk(target) == [service_secret(host), SECRET, NAMED]

    key, secret = do(create_key, values=KeyValues("new", everything=True, hosts=[host]), actor=actor)
    assert keys_on_disk(target) == [service_secret(host), SECRET, secret, NAMED]
    for held in ApiKey.objects.filter(is_service=False):
        do(revoke_key, key=held, actor=actor)
    assert keys_on_disk(target) == [service_secret(host), NAMED]


def test_a_file_with_names_of_keys_says_so_beside_keys_that_are_here(target, host, actor, bring_in, take_over, do):
    do(create_key, values=KeyValues("here", everything=True, hosts=[host]), actor=actor)
    do(request_plan, host=host, actor=actor)
    take_over(bring_in({"apiKeys": [NAMED], "models": {}}))
    assert NAMED in Revision.objects.order_by("-number").first().text


def test_a_variant_runs_the_program_that_its_model_brings(scanned, folder, bring_in):
    command = f"/opt/llama/llama-server --port ${{PORT}} -m {folder}/beta-2b-Q4_0.gguf"
    batch = bring_in({"models": {"one": {"cmd": command}, "two": {"cmd": f"{command} -c 8192"}}})
    for found in models(batch).values():
        assert found["after"]["exact"] == found["before"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("docker run --rm\n -p ${PORT}:80\n image", "docker run --rm -p ${PORT}:80 image"),
        ("# fixed\nserver --port 9999 \\\n-m x", "server --port 9999 -m x"),
    ],
)
def test_comments_and_line_ends_of_a_command_mean_nothing(before, after):
    said = [
        meaning_of(f"models: {{a: {{cmd: {text!r}}}}}".replace("'", '"').encode(), "llama-swap")
        for text in (before, after)
    ]
    assert differences(*said) == []


def test_other_words_mean_something_else():
    said = [meaning_of(f'models: {{a: {{cmd: "docker run {name}"}}}}'.encode(), "llama-swap") for name in ("x", "y")]
    assert differences(*said) == [("models.a.cmd", ["docker", "run", "x"], ["docker", "run", "y"])]


def test_an_entry_kept_by_hand_comes_back_as_the_same(scanned, host, bring_in, take_over):
    command = "# boxed\ndocker run --rm \\\n  -p ${PORT}:8000 \\\n  image --model /models/x"
    entry = {"cmd": command, "checkEndpoint": "/health"}
    take_over(bring_in({"models": {"boxed": entry}}))
    batch = bring_in(Revision.objects.order_by("-number").first().text)
    assert [item.source for item in items(batch, status="conflict")] == []
    [found] = [item for item in items(batch) if item.source == "models.boxed"]
    assert found.status == "same"
    batch = bring_in({"models": {"boxed": {**entry, "cmd": "docker run other"}}})
    assert [item.source for item in items(batch, status="conflict")] == ["models.boxed"]


def test_where_both_differ_ours_stays_unless_theirs_was_chosen(scanned, host, bring_in, take_over):
    config = {"models": {"boxed": {"cmd": "docker run one"}}}
    take_over(bring_in(config))
    config["models"]["boxed"]["cmd"] = "docker run two"
    for name, ticked in (("config.yaml", False), ("config.yaml as changed on the host", True)):
        batch = bring_in(config, name=name)
        view = import_view(batch, ImportSight(batch.by, batch))
        [entry] = next(section for section in view.sections if section.slug == "models").entries
        assert (entry.conflicts, [line.ticked for line in entry.items]) == (1, [ticked])


@pytest.mark.parametrize("number", [".inf", "-.inf", ".nan", "1e999"])
def test_a_number_that_cannot_be_kept_is_told_with_its_line(scanned, bring_in, number):
    batch = bring_in(f"models:\n  a:\n    cmd: x\n    metadata: {{far: {number}}}\n")
    assert batch.state == "failed"
    assert batch.problem == f"line 4: '{number}' is no finite number"
