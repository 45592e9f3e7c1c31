"""Policies, groups and Explain: administrators make them, the list says what each matches and which never decides."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import Group

from models_app.models import Component, Row
from models_app.selectors.policies import explain, policy_lines
from quartermaster_site.access.grants import FILES, Grants, rule_of
from quartermaster_site.access.models import AuditEntry, Policy
from quartermaster_site.access.permissions import level_of
from quartermaster_site.access.rules import Level, Rule, Scope, Subject, ordered
from tests.access.conftest import add_model

LIST = "/access/policies/"


@pytest.fixture
def admin(make_user, client):
    client.force_login(make_user("admin"))
    return client


@pytest.fixture
def rows(host, root):
    return [add_model(host, root, number) for number in (1, 2, 3)]


def text_of(answer) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


def test_policy_is_made_changed_and_removed_with_an_entry_each(admin, rows, host):
    made = {"subject": "role:viewer", "host": host.slug, "model": "*model-2*", "level": "0", "note": "not for guests"}
    assert admin.post(LIST, made).status_code == 302
    policy = Policy.objects.get()
    assert (policy.subject, policy.host, policy.model, policy.level) == ("role viewer", host, "*model-2*", 0)
    assert "1 model on 1 host" in text_of(admin.get(LIST))
    changed = made | {"level": "1", "version": str(policy.version)}
    assert admin.post(f"{LIST}{policy.pk}/", changed).status_code == 302
    late = admin.post(f"{LIST}{policy.pk}/", made | {"version": "1"})
    assert late.status_code == 409
    assert "Somebody changed this policy meanwhile" in text_of(late)
    assert Policy.objects.get().level == 1
    assert admin.get(f"{LIST}{policy.pk}/delete/").status_code == 200
    assert admin.post(f"{LIST}{policy.pk}/delete/", {"version": "2"}).status_code == 302
    assert not Policy.objects.exists()
    told = list(AuditEntry.objects.filter(action__startswith="policy").order_by("pk").values_list("action", "changes"))
    assert [action for action, _ in told] == ["policy.create", "policy.change", "policy.delete"]
    assert told[1][1] == {"level": ["none", "view"]}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"model": "*" * 7 + "a"}, "wildcards"),
        ({"model": "x" * 201}, "200"),
        ({"model": ""}, "required"),
        ({"level": "4"}, "not one of"),
        ({"subject": "role:admin"}, "not one of"),
        ({"subject": "user:99999"}, "not one of"),
        ({"host": "nowhere"}, "not one of"),
        ({"note": "n" * 201}, "200"),
    ],
)
def test_policy_with_bad_values_is_refused_beside_the_field(admin, values, field):
    good = {"subject": "everyone", "host": "", "model": "*", "level": "1"}
    answer = admin.post(LIST, good | values)
    assert answer.status_code == 422
    assert field in text_of(answer)
    assert not Policy.objects.exists()


def test_policy_list_marks_what_never_decides(admin, make_user, rows):
    boss = make_user("admin", "boss")
    empty = Group.objects.create(name="empty")
    Policy.objects.create(model="*a*", level=1)
    Policy.objects.create(model="*a*", level=3)
    Policy.objects.create(user=boss, level=0)
    Policy.objects.create(group=empty, level=3)
    marks = {str(line.policy): line.idle for line in policy_lines()}
    assert marks["everyone: *a* on every host → view"] == ""
    assert "another one always decides first: everyone, *a*, view" in marks["everyone: *a* on every host → edit"]
    assert "is an administrator" in marks["user boss: * on every host → none"]
    assert "nobody in empty" in marks["group empty: * on every host → edit"]
    assert text_of(admin.get(LIST)).count("Never decides") == 3


def test_policy_that_hides_everywhere_says_where_it_does_not(admin, make_user, rows, host):
    """A host's own policy goes before one for every host, whoever it is about."""
    edda = make_user("editor", "edda")
    Policy.objects.create(host=host, level=3)
    other = Policy.objects.create(user=edda, host=host, model="*vl*", level=1)
    made = {"subject": f"user:{edda.pk}", "host": "", "model": "*", "level": "0"}
    said = f"It does not hide everywhere: on {host.name} everyone, *, edit decides first."
    answer = admin.post(LIST, made, follow=True)
    assert said in text_of(answer)
    assert text_of(answer).count("Does not hide everywhere") == 1
    stored = Policy.objects.get(level=0)
    for change, warned in (({"level": "1"}, False), ({"model": "*VL-8b*"}, True), ({"host": host.slug}, False)):
        version = Policy.objects.get(pk=stored.pk).version
        answer = admin.post(f"{LIST}{stored.pk}/", made | change | {"version": version}, follow=True)
        assert ("does not hide everywhere" in text_of(answer).lower()) is warned, change
    other.delete()
    answer = admin.post(LIST, made | {"subject": "everyone", "host": host.slug}, follow=True)
    assert "Stored" in text_of(answer)


def test_policy_count_follows_what_is_typed(admin, rows, host):
    assert "Matches 1 model" in text_of(admin.get(LIST + "count/", {"model": "*model-3*"}))
    assert "Matches 3 models on 1 host" in text_of(admin.get(LIST + "count/", {"model": "*", "host": host.slug}))
    assert "wildcards" in text_of(admin.get(LIST + "count/", {"model": "*" * 8}))


def test_policy_explain_names_every_match_the_winner_and_what_follows(admin, make_user, rows, host):
    edda = make_user("editor", "edda")
    Policy.objects.create(level=1)
    Policy.objects.create(user=edda, host=host, model="*model-1*", level=0)
    page = text_of(admin.get("/access/explain/", {"user": "edda", "host": host.slug, "model": rows[0].served_id}))
    assert "edda does not see model-1-q4_0" in page
    assert "2 policies match" in page
    assert page.index("user edda decides") < page.index("everyone")
    host_wide = text_of(admin.get("/access/explain/", {"user": "edda", "host": host.slug}))
    assert "edda may view the host" in host_wide
    unknown = text_of(admin.get("/access/explain/", {"user": "edda", "host": host.slug, "model": "nothing"}))
    assert "No model of this name" in unknown
    boss = make_user("admin", "boss")
    assert explain(boss, host, "").verdict.level is Level.MANAGE
    assert admin.get("/access/explain/", {"user": "nobody", "host": host.slug}).status_code == 422


def test_policy_of_a_group_follows_its_members(admin, make_user, host):
    vera = make_user("viewer", "vera")
    assert admin.post("/access/groups/", {"name": "vision", "members": [vera.pk]}).status_code == 302
    group = Group.objects.get()
    Policy.objects.create(group=group, level=3)
    fresh = type(vera).objects.get(pk=vera.pk)
    assert level_of(fresh, host) is Level.EDIT
    assert admin.post("/access/groups/", {"name": "VISION"}).status_code == 422
    seen = {"was-name": "vision", "was-member": [vera.pk]}
    assert admin.post(f"/access/groups/{group.pk}/", {"name": "sight", **seen}).status_code == 302
    assert level_of(type(vera).objects.get(pk=vera.pk), host) is Level.VIEW
    late = admin.post(f"/access/groups/{group.pk}/", {"name": "other", **seen})
    assert late.status_code == 409
    assert "It is now: sight with nobody" in text_of(late)
    assert "go with it" in text_of(admin.get(f"/access/groups/{group.pk}/delete/"))
    assert admin.post(f"/access/groups/{group.pk}/delete/").status_code == 302
    assert not Policy.objects.exists()
    actions = AuditEntry.objects.filter(action__startswith="group").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["group.create", "group.change", "group.delete"]


RULE_SETS = [
    [("*model-1*", None, 0)],
    [("*", None, 0), ("model-2", None, 1)],
    [("*", None, 0), ("*model*", None, 3), ("MODEL-3-Q4_0", None, 0)],
    [("/models/*-2-*", None, 0)],
    [("models/model-1*", None, 0), ("*-1-*", None, 1)],
    [("*", "here", 0)],
    [("*", "here", 0), ("*1*", "here", 2), ("*", None, 3)],
    [("model-?", "there", 0)],
]


@pytest.mark.parametrize("policies", RULE_SETS)
@pytest.mark.parametrize("default", [Level.VIEW, Level.EDIT])
def test_policy_as_a_condition_is_the_policy_as_decided(host, rows, policies, default):
    places = {None: None, "here": host.pk, "there": host.pk + 1}
    rules = [
        Rule(number, Subject.EVERYONE, "", places[place], model, Level(level))
        for number, (model, place, level) in enumerate(policies)
    ]
    grants = Grants(default, ordered(rules))
    for level in (Level.VIEW, Level.OPERATE, Level.EDIT):
        decided = {row.pk for row in rows if grants.on(row.policy_scope()) >= level}
        assert set(grants.seen(Row.objects.all(), level=level).values_list("pk", flat=True)) == decided


def test_policy_of_ids_covers_files_by_their_names(host):
    for path in ("/m/mmproj-my-secret.gguf", "/m/secret/vae.safetensors", "D:\\m\\Secret.gguf"):
        Component.objects.create(host=host, path=path, role="vae")

    def seen(model):
        grants = Grants(Level.VIEW, (rule_of(Policy(pk=1, model=model, level=0)),))
        return sorted(grants.seen(Component.objects.all(), FILES).values_list("path", flat=True))

    assert seen("*secret*") == [], "a file tells its folder too, which often is the name of the model"
    assert seen("*-secret") == ["/m/secret/vae.safetensors", "D:\\m\\Secret.gguf"]
    assert seen("secret") == ["/m/mmproj-my-secret.gguf"]
    assert seen("*secret/*") == ["/m/mmproj-my-secret.gguf", "D:\\m\\Secret.gguf"]
    assert seen("d:/m/*") == ["/m/mmproj-my-secret.gguf", "/m/secret/vae.safetensors"]
    scope = Scope(host.pk, ("mmproj-my-secret",), "/m/mmproj-my-secret.gguf")
    assert Grants(Level.VIEW, (Rule(1, Subject.EVERYONE, "", None, "*secret*", Level.NONE),)).on(scope) is Level.NONE
