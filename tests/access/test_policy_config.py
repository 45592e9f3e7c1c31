"""Policies about config files, publishing, imports, rules, jobs, routers and voices: hidden means hidden there."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from models_app.core.export.revisions.outline import outline_of
from models_app.models import (
    Audition,
    Change,
    DiskVersion,
    Finding,
    Fragment,
    HeaderFacts,
    ImportBatch,
    Override,
    Publishing,
    Revision,
    RevisionDetails,
    Router,
    Row,
    SpeechServer,
    StoredPlan,
    TargetWatch,
)
from models_app.routing import ALL
from models_app.services.adopting import adopt_settings
from models_app.services.drift_choices import keep_ours
from models_app.services.publishing import roll_back, submit
from models_app.services.target_looks import adopt_seen
from models_app.services.writing import start_write
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Policy
from quartermaster_site.access.tokens import create_token
from quartermaster_site.errors import NotAllowed, NotFound
from quartermaster_site.jobs.models import Job
from quartermaster_site.version import product_version
from tests.access.conftest import FACTS, furnish
from tests.access.url_table import TABLE
from tests.speech_files import wav

SECRET = "my-secret-vl"
PATH = f"/models/{SECRET}-Q4_0.gguf"
SERVED = f"{SECRET}-q4_0"
VISIBLE = "model-1-q4_0"
WORDS = (b"my-secret",)
HTMX = {"HX-Request": "true"}


@pytest.fixture
def tree(host, root):
    """One of everything, and beside it a second model that is named wherever a model can be named."""
    found = furnish(host, root)
    header = HeaderFacts.objects.create(host=host, path=PATH, size_bytes=1 << 30, mtime_ns=1, facts=FACTS)
    row = Row.objects.create(
        host=host,
        root=root,
        header=header,
        path=PATH,
        served_id=SERVED,
        base_id=SECRET,
        quant="Q4_0",
        file_name=f"{SECRET}-Q4_0.gguf",
        size_bytes=1 << 30,
        model_class="llm",
        architecture="llama",
        model_key=SECRET,
        family_key=SECRET,
        found={"id": SERVED, "full_path": PATH, "file_name": f"{SECRET}-Q4_0.gguf", "model_class": "llm"},
    )
    for name in (SERVED, f"{SERVED}-vision"):
        StoredPlan.objects.create(row=row, profile_id=name, verdict="fits", ctx_tokens=4096, est_ram_bytes=1 << 30)
    found |= {"secret": row.pk} | _texts(host) | _jobs(host, row) | _pins(host, row) | _voices(host, root)
    return found


def _text(contexts, beside=""):
    paths = {SERVED: PATH, f"{SERVED}-vision": PATH}
    entries = [
        f"  {name}:\n    cmd: llama-server --port 1 -m {paths.get(name, f'/models/{name}.gguf')} -c {context}\n"
        for name, context in contexts.items()
    ]
    return "# one\n# two\n# three\nmodels:\n" + "".join(entries) + beside


def _revision(host, number, contexts, **values):
    text = _text(contexts)
    digest = f"{number}" * 64
    findings = [{"rule": "V-09", "severity": "warn", "where": f"models.{SERVED}", "line": 5, "message": "odd flag"}]
    entries = [{"id": name, "file": PATH if SECRET in name else f"/models/{name}.gguf"} for name in contexts]
    revision = Revision.objects.create(
        host=host,
        number=number,
        dialect="llama-swap",
        text=text,
        body_sha256=digest,
        sha256=digest,
        findings=findings,
        summary={"entries": entries, "skipped": [{"file": PATH, "reason": "no engine"}]},
        message=f"with {SERVED}",
        inputs={"version": product_version()},
        **values,
    )
    RevisionDetails.objects.create(revision=revision, outline=outline_of("llama-swap", text).as_json())
    return revision


def _texts(host):
    """Revision 2 is live, 3 changes both models, 4 the visible one alone."""
    now = timezone.now()
    both = {VISIBLE: 4096, SERVED: 4096, f"{SERVED}-vision": 4096}
    live = _revision(host, 2, both, state="written", written_at=now, written_path="/srv/config.yaml")
    _revision(host, 3, both | {VISIBLE: 8192, SERVED: 8192}, state="superseded", written_at=now)
    _revision(host, 4, both | {VISIBLE: 8192}, state="validated")
    host.written_sha256, host.written_at = live.sha256, now
    host.save()
    Publishing.objects.create(host=host, held=f"V-07: {PATH} is missing.")
    Finding.objects.create(host=host, row=Row.objects.get(path=PATH), kind="flag-unknown", path=PATH, text="odd")
    disk = _text({VISIBLE: 4096, SERVED: 2048})
    theirs = DiskVersion.objects.create(host=host, sha256="d" * 64, text=disk, size_bytes=9)
    TargetWatch.objects.create(
        host=host, path=host.publish_path, sha256="d" * 64, case="edited", looked_at=now, since=now
    )
    return {"theirs": theirs.pk}


def _jobs(host, row):
    def job(kind, subject=("", "", ""), **values):
        names = dict(zip(("object_type", "object_id", "object_label"), subject, strict=True))
        made = Job.objects.create(kind=kind, host=host, token="t", state="failed", **names, **values)
        return made.pk

    talk = {"error": f"{PATH} cannot be read", "log": f"reading {PATH}", "current": PATH}
    return {
        "trial": job("test_launch", ("row", str(row.pk), SERVED), error=f"{SERVED} ended"),
        "load": job("load_model", ("router", "a" * 40, f"{SERVED}-vision")),
        "scan": job("scan", ("", "", f"{PATH} again"), result={"models": 2}, **talk),
    }


def _pins(host, row):
    Override.objects.create(host=host, match=row.path, fields={"temp": 0.2}, version=1)
    rule = Override.objects.create(host=host, match=f"*{SECRET}*", fields={"temp": 0.3}, version=1, position=3)
    wide = Override.objects.create(host=host, match="*Q4_0*", fields={"topK": 3}, version=1, position=4)
    values = {"host": host, "action": "save", "changes": {"temp": [None, 0.3]}, "after": {}, "version": 1}
    Change.objects.create(match=row.path, **values)
    change = Change.objects.create(match=rule.match, rule=rule.pk, **values)
    Fragment.objects.create(host=host, served_id=SERVED, fields={"ttl": 9}, version=1)
    groups = {"groups": [{"name": "secret", "match": [f"{SECRET}*"]}, {"name": "rest", "match": ["*"]}]}
    host.settings.create(section="groups", values=groups, version=1)
    host.settings.create(section="names", values={"displayNames": {SERVED: "Mine"}}, version=1)
    host.settings.filter(section="enhancers").update(
        values={"promptEnhancers": [{"model": name, "systemPrompt": "Rewrite."} for name in ("pe", SERVED)]}
    )
    states = [{"id": name, "state": "loaded"} for name in (VISIBLE, SERVED, f"{SERVED}-vision")]
    more = {"aliases": [], "command": [], "since": timezone.now().isoformat()}
    Router.objects.create(
        host=host,
        url="http://127.0.0.1:8080",
        listed=[item | more for item in states],
        held=3,
        slots=4,
        seen_at=timezone.now(),
        answered_at=timezone.now(),
    )
    items = [
        {
            "source": f"models.{name}.temp",
            "line": 1,
            "target": {"kind": "override", "subject": path, "variant": "", "field": "temp"},
            "value": 0.5,
            "section": "overrides",
            "needs": "edit",
            "status": "new",
        }
        for name, path in ((VISIBLE, "/models/model-1-Q4_0.gguf"), (SERVED, PATH))
    ]
    entry = {"way": "same", "before": ["x"], "after": {}, "line": 1, "reason": "", "path": PATH, "variant": ""}
    report = {"items": items, "models": {SERVED: entry}, "findings": [{"message": f"{SERVED} is odd", "line": 3}]}
    theirs = ImportBatch.objects.create(host=host, name="theirs.yaml", state="read", report=report)
    done = {"kind": "override", "subject": PATH, "variant": "", "version": 9, "before": {}}
    undone = ImportBatch.objects.create(host=host, name="done.yaml", state="applied", applied=[done])
    return {"hidden_rule": rule.pk, "wide": wide.pk, "hidden_change": change.pk, "report": theirs.pk, "done": undone.pk}


def _voices(host, root):
    talker = Row.objects.create(
        host=host,
        root=root,
        path="/models/my-secret-talker.gguf",
        served_id="my-secret-talker",
        base_id="my-secret-talker",
        file_name="my-secret-talker.gguf",
        model_class="tts",
        architecture="qwen3-tts",
        found={"id": "my-secret-talker", "full_path": "/models/my-secret-talker.gguf"},
    )
    SpeechServer.objects.create(row=talker, url="http://127.0.0.1:8081", seen_at=timezone.now())
    audition = Audition.objects.create(row=talker, request={"input": "Hello."}, audio=wav(), seconds=1)
    return {"hidden_talker": talker.pk, "hidden_audition": audition.pk}


@pytest.fixture
def edda(make_user, host, tree):
    """An editor from whom the second model is hidden."""
    person = make_user("editor", "edda")
    Policy.objects.create(user=person, host=host, model="*secret*", level=0)
    return person


@pytest.fixture
def signed_in(edda):
    client = Client()
    client.force_login(edda)
    return client


def actor(person):
    """A fresh one: what policies say is read once per person object."""
    return Actor(user=type(person).objects.get(pk=person.pk), name=person.username)


def text_of(host, number):
    return Revision.objects.select_related("host").get(host=host, number=number)


ELSEWHERE = ("/models/", "/api/v1/models/", "/account/", "/about/")
"""Pages of models are walked in test_policy_models.py."""
PLACES = (
    *(
        line.path
        for line in TABLE
        if line.method == "GET" and line.role != "admin" and not line.path.startswith(ELSEWHERE)
    ),
    "/config/local/?revision=3",
    "/config/local/3/write/",
    "/config/local/2/diff/3/",
    "/config/local/3/diff/2/",
    "/config/local/2/diff/3/?tab=text",
    "/config/local/3/rollback/",
    "/config/local/review/?tab=text",
    "/config/local/drift/?tab=text",
    "/hosts/local/rules/{wide}/",
    "/hosts/local/rules/{wide}/delete/",
    "/hosts/local/history/?rule={hidden_rule}",
    "/jobs/?state=failed",
    "/jobs/{scan}/",
    "/jobs/{scan}/panel/",
    "/import/{report}/",
    "/import/{done}/",
    "/import/{done}/undo/",
)


def test_policy_hides_a_model_in_every_answer_of_these_pages(tree, signed_in, edda):
    _, secret = create_token(name="script", days=30, actor=actor(edda))
    script = Client(headers={"authorization": f"Bearer {secret}"})
    told = []
    for place in PLACES:
        path = place.format(**tree)
        client = script if path.startswith("/api/") else signed_in
        for headers in ({}, HTMX):
            answer = client.get(path, headers=headers)
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
            told += [(path, bool(headers), answer.status_code)] * any(word in body.lower() for word in WORDS)
            assert answer.status_code in (200, 286, 302, 403), (path, answer.status_code)
    assert not told


def test_policy_that_grants_one_variant_of_a_hidden_model_shows_its_name_alone(tree, host, make_user):
    """What policies grant is an entry of the file: the model has no page for them, so nothing leads there."""
    person = make_user("editor", "vera")
    for name, level in ((SERVED, 0), (SECRET, 0), (f"{SERVED}-vision", 1)):
        Policy.objects.create(user=person, model=name, level=level)
    client = Client()
    client.force_login(person)
    assert client.get(f"/models/{tree['secret']}/").status_code == 404
    named = 0
    for path in (
        "/config/local/drift/",
        "/config/local/review/",
        "/config/local/2/diff/3/",
        "/router/local/",
        "/models/",
    ):
        html = client.get(path).content.decode()
        named += f"{SERVED}-vision" in html
        assert f"/models/{tree['secret']}/" not in html, path
        assert f"{SERVED}<" not in html, path
    assert named >= 2


def test_policy_walk_would_find_the_model(tree, make_user):
    """The same places name it for somebody from whom nothing is hidden."""
    client = Client()
    client.force_login(make_user("editor", "emil"))
    places = [place.format(**tree) for place in PLACES if not place.startswith("/api/")]
    named = [path for path in places if b"my-secret" in client.get(path).content]
    for path in ("/config/local/", "/config/local/2/diff/3/", "/jobs/", "/hosts/local/rules/", "/router/local/"):
        assert path in named
    assert len(named) > 20


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/{trial}/",
        "/jobs/{load}/",
        "/jobs/{load}/panel/",
        "/hosts/local/rules/{hidden_rule}/",
        "/hosts/local/rules/{hidden_rule}/delete/",
        "/voices/local/servers/{hidden_talker}/audition/",
        "/voices/local/auditions/{hidden_audition}/audio/",
        "/api/v1/jobs/{trial}/",
    ],
)
def test_policy_hidden_object_is_as_one_that_is_not_there(tree, signed_in, edda, path):
    _, secret = create_token(name="script", days=30, actor=actor(edda))
    script = Client(headers={"authorization": f"Bearer {secret}"})
    client = script if path.startswith("/api/") else signed_in
    here = client.get(path.format(**tree))
    nowhere = client.get(path.format(**dict.fromkeys(tree, 99_999)))
    assert (here.status_code, nowhere.status_code) == (404, 404)
    told = [re.sub(rb"[0-9]+", b"", body.partition(b"<main")[2] or body) for body in (here.content, nowhere.content)]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/jobs/{trial}/retry/", {}),
        ("/jobs/{load}/cancel/", {}),
        ("/hosts/local/rules/{hidden_rule}/", {"version": "1", "match": "*x*", "intent": "save"}),
        ("/hosts/local/rules/{hidden_rule}/delete/", {"version": "1"}),
        ("/hosts/local/rules/{hidden_rule}/move/?to=up", {"beside": "700002"}),
        ("/hosts/local/history/{hidden_change}/restore/", {"version": "1"}),
        ("/router/local/action/", {"action": "unload", "model": SERVED}),
        ("/router/local/action/", {"action": "unload", "model": f"{SERVED}-vision"}),
        ("/router/local/action/", {"action": "unload", "model": "never-there"}),
        ("/voices/local/servers/{hidden_talker}/ask/", {}),
        ("/voices/local/servers/{hidden_talker}/drop/", {"name": "guest"}),
        ("/voices/local/servers/{hidden_talker}/audition/", {"input": "Hello."}),
        ("/voices/local/{voice}/send/", {"model": "{hidden_talker}"}),
    ],
)
def test_policy_hidden_object_takes_no_orders(tree, signed_in, path, data):
    data = {key: value.format(**tree) for key, value in data.items()}
    before = Job.objects.count()
    for headers in ({}, HTMX):
        assert signed_in.post(path.format(**tree), data, headers=headers).status_code == 404
    assert Job.objects.count() == before


def test_policy_case_8_no_publishing_of_a_change_that_is_hidden(tree, host, edda, signed_in):
    TargetWatch.objects.all().delete()
    Revision.objects.filter(number=4).delete()
    Revision.objects.filter(number=3).update(state="validated", written_at=None)
    page = signed_in.get("/config/local/review/")
    assert b"1 change you cannot see" in page.content
    assert b"Write revision 3 to" not in page.content.split(b"<aside")[1]
    for headers in ({}, HTMX):
        answer = signed_in.post("/config/local/3/write/", {"path": host.publish_path}, headers=headers)
        assert answer.status_code == 403
        assert b"1 change you cannot see" in answer.content
    _, secret = create_token(name="script", days=30, actor=actor(edda))
    script = Client(headers={"authorization": f"Bearer {secret}"})
    asked = {"revision": 3, "path": host.publish_path}
    refused = script.post("/api/v1/hosts/local/publish/", asked, content_type="application/json")
    assert refused.status_code == 403
    assert b"1 change you cannot see" in refused.content
    assert not Job.objects.filter(kind="publish").exists()


def test_policy_lets_a_change_be_published_that_is_visible_as_a_whole(tree, host, signed_in):
    TargetWatch.objects.all().delete()
    page = signed_in.get("/config/local/review/")
    assert b"you cannot see" not in page.content
    assert signed_in.post("/config/local/4/write/", {"path": host.publish_path}).status_code == 302
    assert Job.objects.filter(kind="publish").exists()


@pytest.mark.parametrize("way", ["write", "submit", "roll back", "keep ours", "adopt"])
def test_policy_case_8_holds_for_every_way_to_the_host(tree, host, edda, make_user, way):
    if way not in ("keep ours", "adopt"):
        TargetWatch.objects.all().delete()
    TargetWatch.objects.filter(host=host).update(sha256="3" * 64 if way == "adopt" else "d" * 64)
    if way == "submit":
        Publishing.objects.update(policy="approval")
    Revision.objects.filter(number=4).delete()
    Revision.objects.filter(number=3).update(state="superseded" if way == "roll back" else "validated")

    def tried(person):
        by = actor(person)
        match way:
            case "write":
                start_write(revision=text_of(host, 3), actor=by)
            case "submit":
                submit(revision=text_of(host, 3), actor=by)
            case "roll back":
                roll_back(revision=text_of(host, 3), actor=by)
            case "adopt":
                adopt_seen(host=host, sha256="3" * 64, actor=by)
            case "keep ours":
                keep_ours(host=host, finding=f"edited:{'d' * 64}", actor=by)

    with pytest.raises(NotAllowed, match="change(s?) you cannot see"):
        tried(edda)
    tried(make_user("editor", "emil"))


def test_policy_keeps_what_stands_against_a_write_from_naming_a_hidden_model(tree, host, signed_in):
    TargetWatch.objects.all().delete()
    Row.objects.filter(path=PATH).update(state="missing")
    page = signed_in.get("/config/local/review/").content
    refused = signed_in.post("/config/local/4/write/", {"path": host.publish_path})
    assert refused.status_code == 422
    for body in (page, refused.content):
        assert b"my-secret" not in body
        assert b"This names models that you may not see" in body
    assert not Job.objects.filter(kind="publish").exists()


def test_policy_settings_of_a_text_come_back_only_where_one_may_edit_all_of_it(tree, host, edda):
    Change.objects.filter(match=PATH).update(after={"temp": 0.3})
    RevisionDetails.objects.filter(revision__number=2).update(inputs={"version": "1", "last_change": 0})
    with pytest.raises(NotAllowed, match="1 model that you may not edit"):
        adopt_settings(revision=text_of(host, 2), actor=actor(edda))


def test_policy_cases_2_and_5_refuse_what_is_about_the_whole_host(tree, host, make_user):
    otto, vera = make_user("operator", "otto"), make_user("viewer", "vera")
    vera.groups.add(Group.objects.get(name="vision"))
    Policy.objects.create(host=host, level=1)
    Policy.objects.create(group=Group.objects.get(name="vision"), model="*vl*", level=3)
    Revision.objects.filter(number=3).update(state="validated")
    for person in (otto, vera):
        client = Client()
        client.force_login(person)
        for path in ("/hosts/local/scan/", "/config/local/4/write/", "/config/local/render/", "/hosts/local/plan/"):
            for headers in ({}, HTMX):
                assert client.post(path, headers=headers).status_code == 403, (path, person)
        page = client.get("/config/local/")
        assert b"Review and write revision" not in page.content
        assert b"Plan and render again" not in page.content
    unload = {"action": "unload", "model": SERVED}
    assert client.post("/router/local/action/", unload).status_code == 302, "vera may: *vl* is granted"
    assert client.post("/router/local/action/", unload | {"model": VISIBLE}).status_code == 403


def test_policy_unloading_all_needs_the_right_to_unload_each(tree, signed_in):
    answer = signed_in.post("/router/local/action/", {"action": "unload", "model": ALL})
    assert answer.status_code == 403
    assert b"2 models that you may not unload" in answer.content
    assert b"Unload all" not in signed_in.get("/router/local/").content


def test_policy_rule_over_models_that_one_may_not_edit_is_refused_with_their_number(tree, host, signed_in):
    rules = list(Override.objects.order_by("pk").values_list("pk", "match", "version"))
    added = signed_in.post("/hosts/local/rules/", {"match": "*Q4*", "quant": ""})
    assert added.status_code == 422
    assert b"1 model that you may not edit" in added.content
    wide = f"/hosts/local/rules/{tree['wide']}/"
    assert signed_in.post(f"{wide}delete/", {"version": "1"}).status_code == 403
    assert (
        signed_in.post(wide, {"version": "1", "match": "*model-1*", "topK": "7", "intent": "save"}).status_code == 403
    )
    changed = signed_in.post(
        "/hosts/local/rules/700002/", {"version": "1", "match": "*", "temp": "0.5", "intent": "save"}
    )
    assert changed.status_code == 422
    assert b"2 models that you may not edit" in changed.content
    assert list(Override.objects.order_by("pk").values_list("pk", "match", "version")) == rules
    page = signed_in.get("/hosts/local/rules/").content
    assert b"*Q4_0*" in page
    assert b"1 model" in page
    assert b"2 models" not in page


def test_policy_rules_change_places_past_one_that_is_hidden(tree, signed_in):
    up = signed_in.post(f"/hosts/local/rules/{tree['rule']}/move/?to=up", {"beside": "700001"})
    assert up.status_code == 302
    assert list(
        Override.objects.filter(pk__in=[700_001, 700_002]).order_by("position").values_list("pk", flat=True)
    ) == [
        700_002,
        700_001,
    ]


def test_policy_import_is_taken_over_in_the_parts_that_one_may_edit(tree, host, signed_in):
    batch = f"/import/{tree['report']}/"
    page = signed_in.get(batch).content
    assert b"models.model-1-q4_0.temp" in page
    ticked = {"section": "overrides", "item": ["0", "1"]}
    answer = signed_in.post(f"{batch}apply/", {"section": "overrides", "item": ["1"]})
    assert answer.status_code == 422, "what is hidden alone is nothing"
    assert signed_in.post(f"{batch}apply/", ticked).status_code == 302
    assert Override.objects.get(match=PATH).fields == {"temp": 0.2}
    refused = signed_in.post(f"/import/{tree['done']}/undo/")
    assert refused.status_code == 403
    assert b"1 row that you may not edit" in refused.content


def test_policy_texts_of_a_whole_host_are_for_those_who_see_all_of_it(tree, signed_in):
    for path in ("/config/local/2/download/", f"/config/local/drift/{tree['theirs']}/", "/export/local/overrides.csv"):
        answer = signed_in.get(path)
        assert answer.status_code == 403
        assert b"models that you may not see" in answer.content
    page = signed_in.get("/config/local/").content
    assert VISIBLE.encode() in page
    assert b"Download" not in page


def test_policy_hidden_host_is_nowhere_in_config_jobs_and_imports(tree, host, make_user):
    hidden = make_user("editor", "eva")
    Policy.objects.create(user=hidden, host=host, level=0)
    client = Client()
    client.force_login(hidden)
    paths = [
        "/config/local/",
        "/config/local/review/",
        "/config/local/revisions/",
        "/router/local/",
        "/voices/local/",
        "/export/local/",
        "/import/on/local/",
        "/hosts/local/rules/",
        "/fleet-variants/local/",
        f"/import/{tree['report']}/",
        f"/jobs/{tree['scan']}/",
    ]
    for path in paths:
        for headers in ({}, HTMX):
            assert client.get(path, headers=headers).status_code == 404, path
    assert b"Local machine" not in client.get("/jobs/").content


def test_policy_no_entry_of_a_router_is_told_apart_by_the_refusal(tree, host, edda):
    from models_app.services.routers import start_action

    told = set()
    for name in (SERVED, "never-there"):
        with pytest.raises(NotFound) as refusal:
            start_action(host=host, action="unload", model=name, actor=actor(edda))
        told.add(str(refusal.value))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/hosts/local/settings/memory/", {"version": "0", "targetVramGB": "4", "intent": "impact"}),
        ("/hosts/local/settings/gpu/", {"version": "0", "intent": "impact"}),
        ("/hosts/local/settings/kv/", {"version": "0", "kvFloor": "q4_0", "intent": "impact"}),
        ("/hosts/local/rules/{rule}/", {"version": "1", "match": "*", "topK": "3", "intent": "impact"}),
        ("/hosts/local/rules/", {"match": "*my*", "quant": ""}),
        ("/fleet-variants/local/all/", {"version": "1", "threads": "3", "intent": "impact"}),
        ("/config/local/drift/choose/", {"choice": "keep", "finding": "another"}),
        ("/import/{report}/apply/", {}),
    ],
)
def test_policy_previews_and_refusals_name_and_count_what_is_seen(tree, signed_in, path, data):
    for headers in ({}, HTMX):
        answer = signed_in.post(path.format(**tree), data, headers=headers)
        assert answer.status_code in (200, 422), answer.status_code
        assert b"my-secret" not in answer.content.replace(b'value="*my*"', b"")
        assert b" of 4 plans" not in answer.content


def test_policy_granted_model_on_a_hidden_host_has_its_jobs(tree, host, make_user):
    vera = make_user("viewer", "vera")
    Policy.objects.create(user=vera, host=host, level=0)
    Policy.objects.create(user=vera, host=host, model="*vl*", level=2)
    client = Client()
    client.force_login(vera)
    found = {name: client.get(f"/jobs/{tree[name]}/").status_code for name in ("trial", "load", "scan")}
    assert found == {"trial": 200, "load": 200, "scan": 404}
    listed = client.get("/jobs/").content
    assert listed.count(b'class="q-name" href="/jobs/') == 2
    assert client.post(f"/jobs/{tree['trial']}/retry/").status_code == 422, "refused as of a kind that is not repeated"
