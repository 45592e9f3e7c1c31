"""Files that settings name: none that a policy hides, and none outside the host's folders without the right to write
launch arguments. A preview would tell that they exist and how large they are, a server would open them.
"""

from __future__ import annotations

import pytest
from django.test import Client

from gpus_app.models import HostSetting
from models_app.models import Override
from models_app.services.bulk import REFUSED, apply_change
from models_app.services.editing import TAKEN
from models_app.services.named_files import OUTSIDE, file_problems
from models_app.services.rules import save_rule
from models_app.services.sections import save_encoder_pins, save_fleet_section
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry, Policy
from quartermaster_site.access.refusals import CHANGE
from quartermaster_site.errors import NotAllowed, Refused
from tests.access.conftest import add_model

HIDDEN = "/models/model-9-Q4_0.gguf"


@pytest.fixture
def mallory(installation, host, root, make_user):
    add_model(host, root, 9)
    person = make_user("editor", "mallory")
    Policy.objects.create(user=person, host=host, model="*model-9*", level=0)
    return person


def _client(person):
    client = Client()
    client.force_login(person)
    return client


def test_policy_hides_files_from_previews_and_saves(mallory, installation, host):
    client, model = _client(mallory), installation["model"]
    answers = []
    for name in (HIDDEN, "/models/model-90-Q4_0.gguf", "/models/../models//model-9-Q4_0.gguf"):
        tried = client.post(f"/models/{model}/edit/preview/", {"version": "1", "mmprojFile": name}, headers=HTMX)
        saved = client.post(f"/models/{model}/edit/", {"version": "1", "mmprojFile": name})
        answers.append((tried.status_code, saved.status_code))
        assert b"no file of this name" in tried.content
    assert set(answers) == {(422, 422)}
    assert Override.objects.get(match__contains="model-1").fields == {"temp": 0.5}
    seen = client.post(
        f"/models/{model}/edit/preview/", {"version": "1", "mmprojFile": "/models/mmproj.gguf"}, headers=HTMX
    )
    assert seen.status_code == 200


HTMX = {"HX-Request": "true"}


def test_policy_of_files_holds_for_rules_bulk_edits_and_pins(mallory, installation, host):
    actor = Actor(user=mallory, name="mallory")
    row = host.rows.get(pk=installation["model"])
    rule = Override.objects.get(pk=installation["rule"])
    with pytest.raises(Refused):
        save_rule(rule=rule, values={"mmprojFile": HIDDEN}, version=1, actor=actor)
    with pytest.raises(Refused):
        save_rule(rule=rule, values={"servedId": "model-9-q4_0"}, version=1, actor=actor)
    assert apply_change([row], {"vaePath": HIDDEN}, versions={row.pk: 1}, actor=actor)[0].word == REFUSED
    with pytest.raises(Refused):
        save_encoder_pins(host=host, values={"t5xxl": HIDDEN}, version=0, actor=actor)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"chatTemplateFile": "/etc/passwd"}, OUTSIDE),
        ({"chatTemplateFile": "/models/../etc/passwd"}, OUTSIDE),
        ({"chatTemplateFile": "/models-of-others/t.jinja"}, OUTSIDE),
        ({"chatTemplateFile": "etc/passwd"}, OUTSIDE),
        ({"loras": [{"path": "../../etc/passwd"}]}, OUTSIDE),
        ({"loras": [{"path": "style.gguf"}]}, None),
        ({"chatTemplateFile": "none"}, None),
        ({"vaePath": "/models/ae.safetensors"}, None),
    ],
)
def test_files_outside_the_folders_need_the_right_to_write_arguments(installation, host, make_user, values, word):
    editor = make_user("editor", "edda")
    assert file_problems(editor, host, {}, values).get(next(iter(values))) == word
    assert file_problems(editor, host, values, values) == {}
    editor.account.custom_args = True
    assert file_problems(editor, host, {}, values) == {}


def test_policy_keeps_ids_of_models_that_one_may_not_edit(mallory, installation, host, root):
    """Whoever takes the id of a model gives that one another, and gets its clients."""
    add_model(host, root, 5)
    Policy.objects.create(user=mallory, host=host, model="/models/model-5*", level=1)
    client, model = _client(mallory), installation["model"]
    for name in ("model-9-q4_0", "Model-9-q4_0", "model-90", "model-5-q4_0", "MODEL-5-Q4_0"):
        answer = client.post(f"/models/{model}/edit/", {"version": "1", "servedId": name})
        assert (answer.status_code, TAKEN in answer.content.decode()) == (422, True), name
    assert client.post(f"/models/{model}/edit/", {"version": "1", "servedId": "mine"}).status_code == 302


def test_policy_keeps_sections_that_name_models_whole(mallory, host):
    """An import could store them too: what the person does not see would be dropped."""
    HostSetting.objects.create(host=host, section="names", values={"displayNames": {"model-9-q4_0": "Nine"}}, version=1)
    with pytest.raises(NotAllowed):
        save_fleet_section(
            host=host, section="names", values={"displayNames": {"a": "b"}}, version=1, actor=Actor(user=mallory)
        )
    assert HostSetting.objects.get(host=host, section="names").version == 1


def test_policy_refusals_of_rules_and_publishing_are_in_the_audit_log(mallory, host):
    client = _client(mallory)
    assert client.post("/hosts/local/rules/", {"match": "*model-9*"}).status_code == 422
    assert client.post("/hosts/local/rules/", {"match": "typo"}).status_code == 422
    assert client.post("/config/local/1/submit/").status_code == 422
    found = AuditEntry.objects.filter(action=CHANGE).order_by("pk")
    assert [entry.reason[:22] for entry in found] == ["422: This rule matches", "422: No approval is ne"]
