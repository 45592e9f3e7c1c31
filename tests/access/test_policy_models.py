"""What policies make of models: the worked cases of web.md 7.3 on pages, fragments, bulk edits, the API and in counts,
and that what is hidden is nowhere to be read.
"""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpus_app.models import Backend, Host
from models_app.models import Change, Component, Finding, HeaderFacts, Override, Root, Row, StoredPlan
from models_app.selectors.sight import HostSight, sees_all
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry, Policy
from quartermaster_site.access.rules import Level
from quartermaster_site.access.tokens import create_token
from quartermaster_site.jobs.models import Job
from tests.access.conftest import FACTS

HTMX = {"HX-Request": "true"}
VL, SECRET, LLAMA = "qwen3-vl-8b", "my-secret-vl", "llama-3-8b"
HUSH = ("hush-model-9", "Hush-Model-9")
"""What the hidden model is called, as its id, its base id, its folder and in the name of its file."""


def place(host: Host, name: str, quant: str = "Q4_0", **more) -> Row:
    """A planned text model in a folder of its own."""
    file_name = more.pop("file_name", f"{name}-{quant}.gguf")
    path = f"/models/{name}/{file_name}"
    served = f"{name}-{quant.lower()}"
    header = HeaderFacts.objects.create(host=host, path=path, size_bytes=1 << 30, mtime_ns=1, facts=FACTS)
    found = {"id": served, "full_path": path, "file_name": file_name, "model_class": "llm", "size_bytes": 1 << 30}
    columns = {"root": host.roots.first(), "model_class": "llm", "architecture": "llama", "size_bytes": 1 << 30} | more
    row = Row.objects.create(
        host=host,
        header=header,
        path=path,
        served_id=served,
        base_id=name,
        quant=quant,
        file_name=file_name,
        **{"model_key": name, "family_key": name} | columns,
        found=found,
    )
    StoredPlan.objects.create(row=row, profile_id=served, verdict="fits", ctx_tokens=4096, est_ram_bytes=1 << 30)
    return row


def machine(slug: str) -> Host:
    host = Host.objects.create(slug=slug, name=f"Machine {slug}", last_seen_at=timezone.now())
    Root.objects.create(host=host, path="/models", state="ok", file_count=77, last_scan_at=timezone.now())
    return host


@pytest.fixture
def fleet(make_user):
    """(name of a model, slug) -> row, the four people and the three policies of the worked cases."""
    hosts = {slug: machine(slug) for slug in ("gpu-a", "gpu-b")}
    rows = {(name, slug): place(host, name) for slug, host in hosts.items() for name in (VL, SECRET, LLAMA)}
    vision = Group.objects.create(name="vision")
    people = {name: make_user(role, name) for name, role in PEOPLE.items()}
    for name in ("vera", "edda"):
        people[name].groups.add(vision)
    Policy.objects.create(host=hosts["gpu-b"], level=Level.VIEW)
    Policy.objects.create(group=vision, model="*vl*", level=Level.EDIT)
    Policy.objects.create(user=people["edda"], host=hosts["gpu-a"], model="*SECRET*", level=Level.NONE)
    return rows | people


PEOPLE = {"vera": "viewer", "otto": "operator", "edda": "editor", "ada": "admin"}


def browser(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def script(person) -> Client:
    _, secret = create_token(name=f"of {person}", days=30, actor=Actor(user=person))
    return Client(headers={"authorization": f"Bearer {secret}"})


CASES = [
    ("vera", VL, "gpu-a", Level.EDIT),
    ("vera", VL, "gpu-b", Level.EDIT),
    ("vera", LLAMA, "gpu-a", Level.VIEW),
    ("edda", SECRET, "gpu-a", Level.NONE),
    ("edda", SECRET, "gpu-b", Level.EDIT),
    ("edda", LLAMA, "gpu-b", Level.VIEW),
    ("edda", LLAMA, "gpu-a", Level.EDIT),
    ("otto", VL, "gpu-a", Level.OPERATE),
    ("otto", VL, "gpu-b", Level.VIEW),
    ("ada", SECRET, "gpu-a", Level.MANAGE),
]


@pytest.mark.parametrize(("who", "model", "slug", "level"), CASES)
def test_policy_cases_on_every_way_to_a_model(fleet, monkeypatch, who, model, slug, level):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    row, client = fleet[model, slug], browser(fleet[who])
    seen = level >= Level.VIEW
    expected = 200 if seen else 404
    assert client.get(f"/models/{row.pk}/").status_code == expected
    assert client.get(f"/models/{row.pk}/row/", headers=HTMX).status_code == expected
    assert client.post(f"/models/{row.pk}/preview/", {"ub": "256"}, headers=HTMX).status_code == expected
    assert script(fleet[who]).get(f"/api/v1/models/{row.pk}/").status_code == expected
    assert (row.served_id in listed(client, f"/models/?host={slug}")) == seen
    edit = client.post(f"/models/{row.pk}/edit/", {"version": "0", "temp": "0.5"})
    assert edit.status_code == (302 if level >= Level.EDIT else 403 if seen else 404)
    reread = client.post(f"/models/{row.pk}/files/read/")
    assert reread.status_code == (302 if level >= Level.OPERATE else 403 if seen else 404)
    page = client.get(f"/models/{row.pk}/edit/")
    assert (b'name="intent" value="save"' in page.content) == (level >= Level.EDIT)
    assert Override.objects.filter(match=row.path, host__slug=slug, fields={"temp": 0.5}).exists() == (
        level >= Level.EDIT
    )


def listed(client: Client, address: str) -> set[str]:
    html = client.get(address, headers=HTMX).content.decode()
    return set(re.findall(r'<span class="q-id">([^<]*)</span>', html))


def test_policy_counts_of_the_list_the_frame_and_the_api(fleet):
    """Six files; one is hidden from edda."""
    for who, count in (("ada", 6), ("edda", 5)):
        client = browser(fleet[who])
        html = client.get("/models/?q=l").content.decode()
        assert f">All <small>{count}</small>" in html
        assert f"{count} models in {count} quants" in html
        assert f"filters hide {count - 2}" in client.get("/models/?q=llama-3").content.decode()
        assert f'{count}<span class="visually-hidden"> models</span>' in html
        assert f"{count - 3} on Machine gpu-a" in html
        assert script(fleet[who]).get("/api/v1/models/").json()["total"] == count
        card = client.get("/hosts/gpu-a/card/", headers=HTMX).content.decode()
        assert f'<dt>Planned</dt><dd><a href="/models/?host=gpu-a">{count - 3}</a>' in card


def test_policy_of_bulk_edits_refuses_by_row_and_knows_nothing_hidden(fleet, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    client = browser(fleet["edda"])
    rows = [fleet[SECRET, "gpu-a"], fleet[LLAMA, "gpu-b"], fleet[VL, "gpu-b"]]
    ticked = "&".join(f"row={row.pk}" for row in rows)
    chosen = client.get(f"/models/bulk/?{ticked}").content.decode()
    assert rows[1].served_id in chosen
    assert "my-secret-vl" not in chosen
    posted = {"rows": ",".join(f"{row.pk}:0" for row in rows), "key-1": "temp", "value-1": "0.5"}
    for intent in ("preview", "apply"):
        html = client.post("/models/bulk/", posted | {"intent": intent}).content.decode()
        assert "A policy lets you view here" in html
        assert "my-secret-vl" not in html
    assert list(Override.objects.values_list("match", "host__slug")) == [(rows[2].path, "gpu-b")]
    every = client.get("/models/bulk/?all=1&host=gpu-a").content.decode()
    assert "my-secret-vl" not in every


def test_policy_of_viewers_with_a_grant_opens_the_bulk_edit(fleet):
    assert browser(fleet["vera"]).get("/models/bulk/").status_code == 200
    assert browser(fleet["otto"]).get("/models/bulk/").status_code == 403


def test_policy_shows_tick_boxes_where_a_change_would_be_taken(fleet):
    html = browser(fleet["vera"]).get("/models/").content.decode()
    boxes = set(re.findall(r'name="row" value="(\d+)"', html))
    assert boxes == {str(fleet[name, slug].pk) for name in (VL, SECRET) for slug in ("gpu-a", "gpu-b")}


# What is hidden is nowhere to be read


@pytest.fixture
def hush(make_user):
    """A host with one hidden model among others that have to do with it, and who must not see it."""
    host = machine("gpu-a")
    hidden = place(host, HUSH[0], file_name=f"{HUSH[1]}-Q4_0.gguf", model_key="open")
    place(host, HUSH[0], "Q8_0", file_name=f"{HUSH[1]}-Q8_0.gguf")
    shown = place(host, "open", model_key="open", family_key=HUSH[0])
    shown.found = shown.found | {"draft_path": hidden.path, "draft_size_bytes": 1 << 20, "draft_origin": "family"}
    shown.save()
    StoredPlan.objects.filter(row=hidden).update(verdict="over")
    StoredPlan.objects.create(row=hidden, profile_id=f"{hidden.served_id}-32k", verdict="fits", est_vram_bytes=1 << 40)
    projector = f"/models/{HUSH[0]}/mmproj-F16.gguf"
    for path, role in ((projector, "projector"), (f"/models/{HUSH[1]}.safetensors", "vae"), (hidden.path, "llm")):
        Component.objects.create(host=host, path=path, role=role, family="flux")
    Component.objects.create(host=host, path="/models/ae.safetensors", role="vae", family="flux")
    image(host, shown)
    told = f"served as open-2, because open is {hidden.path}"
    Finding.objects.create(host=host, row=shown, kind="duplicate-id", path=shown.path, text=told, level="warning")
    Finding.objects.create(host=host, row=hidden, kind="not-servable", path=hidden.path, text="no engine")
    Finding.objects.create(host=host, kind="incomplete", path=f"/models/{HUSH[0]}/part.gguf", text="cut short")
    Finding.objects.create(host=host, kind="incomplete", path="/models/rest.gguf", text="cut short")
    pinned = {"draftModel": hidden.path}
    own = Override.objects.create(host=host, match=shown.path, fields={"temp": 0.5}, version=2)
    own.variants.create(name="fast", fields={"temp": 0.1}, version=1)
    Override.objects.create(host=host, match=hidden.path, fields={"temp": 0.5}, version=1)
    change = {"host": host, "match": shown.path, "action": "save", "changes": {"textEncoderPath": [None, hidden.path]}}
    Change.objects.create(**change, after=pinned, version=1)
    Backend.objects.create(host=host, slug="llama", kind="llama", path="/opt/llama-server")
    for label, pk in ((hidden.served_id, hidden.pk), (shown.served_id, shown.pk)):
        Job.objects.create(
            kind="verify_memory", host=host, token="t", object_type="row", object_id=str(pk), object_label=label
        )
    AuditEntry.objects.create(
        user=make_user("admin", "boss"),
        actor="boss",
        action="access-key.create",
        changes={"models": [None, [hidden.path]]},
    )
    person = make_user("editor", "guest")
    Policy.objects.create(user=person, model="*hush*", level=Level.NONE)
    return {"host": host, "hidden": hidden, "shown": shown, "person": person, "variant": own.variants.get().pk}


def image(host: Host, encoder: Row) -> Row:
    """An image model whose enhancer is pinned to the hidden model."""
    row = place(host, "painting", model_class="image", category="image")
    fields = {"promptEnhancer": f"{HUSH[0]}-q4_0", "textEncoderPath": f"/models/{HUSH[0]}/{HUSH[1]}-Q4_0.gguf"}
    Override.objects.create(host=host, match=row.path, fields=fields, version=1)
    return row


LISTS = [
    "/",
    "/models/",
    "/models/?q=hush",
    "/models/?group=family&sort=-size",
    "/models/?state=over",
    "/models/bulk/?all=1",
    "/components/",
    "/components/?tab=projectors",
    "/components/?tab=enhancers",
    "/components/?chat=1&q=hush",
    "/issues/",
    "/issues/?q=hush",
    "/issues/?level=acknowledged",
    "/issues/export/",
    "/hosts/",
    "/hosts/gpu-a/",
    "/hosts/gpu-a/card/",
    "/hosts/gpu-a/fits/",
    "/hosts/gpu-a/fits/?q=hush&best=1",
    "/hosts/gpu-a/settings/gpu/",
    "/hosts/gpu-a/settings/memory/",
    "/hosts/gpu-a/folders/",
    "/hosts/gpu-a/backends/",
]
TABS = [
    "",
    "row/",
    "check/",
    "edit/",
    "launch/",
    "test/",
    "variants/",
    "history/",
    "reset/",
    "compare/",
    "files/",
    "forget/",
]


def answers(client: Client, addresses: list[str]) -> dict[str, str]:
    """Each address whole and as htmx asks for it."""
    found = {}
    for address in addresses:
        for headers in ({}, HTMX):
            response = client.get(address, headers=headers)
            assert response.status_code in (200, 286, 302, 404), address
            found[f"{address} {headers}"] = response.content.decode() + str(response.headers)
    return found


def told(text: str, asked: str) -> list[str]:
    """Where a text names the hidden model, other than by what the address asked for."""
    return re.findall(rf"[^\n]*(?:{'|'.join(HUSH)}|mmproj-F16)[^\n]*", text)


def test_policy_hides_a_model_from_every_page_and_fragment(hush):
    client = browser(hush["person"])
    painting = Row.objects.get(base_id="painting").pk
    tabs = [f"/models/{hush['shown'].pk}/{tab}" for tab in TABS]
    tabs += [f"/models/{painting}/{tab}" for tab in ("edit/", "files/", "launch/")]
    tabs += [f"/models/{hush['shown'].pk}/variants/{hush['variant']}/", f"/models/{hush['shown'].pk}/?ub=256"]
    for address, text in answers(client, [*LISTS, *tabs]).items():
        assert not told(text, address), (address, told(text, address))


def test_policy_hides_a_model_from_the_api(hush):
    client = script(hush["person"])
    shown = hush["shown"].pk
    for address in ("hosts/", "models/?q=", "jobs/", f"models/{shown}/", f"models/{shown}/plans/"):
        text = client.get(f"/api/v1/{address}").content.decode()
        assert not told(text, address)
    preview = client.post(f"/api/v1/models/{shown}/preview/", {"values": {}}, content_type="application/json")
    assert preview.status_code == 200
    assert not told(preview.content.decode(), "")


def test_policy_shows_the_same_pages_with_all_names_to_others(hush, make_user):
    """The walk above must be able to fail."""
    client = browser(make_user("editor", "colleague"))
    named = {address.split(" ")[0] for address, text in answers(client, LISTS).items() if told(text, address)}
    shown = f"/models/{hush['shown'].pk}"
    tabs = [f"{shown}/files/", f"{shown}/history/", f"{shown}/launch/", f"{shown}/", f"{shown}/edit/"]
    named |= {address.split(" ")[0] for address, text in answers(client, tabs).items() if told(text, address)}
    assert {"/", "/models/", "/components/", "/components/?tab=projectors", "/issues/", "/issues/export/"} <= named
    assert {"/hosts/gpu-a/fits/", f"{shown}/files/", f"{shown}/history/", f"{shown}/launch/"} <= named


def test_policy_makes_a_hidden_model_like_one_that_is_not_there(hush):
    client = browser(hush["person"])
    for tab in TABS:
        texts = []
        for pk in (hush["hidden"].pk, 999_999):
            response = client.get(f"/models/{pk}/{tab}", headers=HTMX)
            assert response.status_code == 404
            texts.append(re.sub(r"nonce-\S+|[0-9a-f]{12,}", "", response.content.decode().replace(f"/{pk}/", "/N/")))
        assert texts[0] == texts[1]


def test_policy_keeps_hidden_findings_and_components_from_being_touched(hush):
    client = browser(hush["person"])
    finding = Finding.objects.get(row=hush["hidden"])
    part = Component.objects.get(path__endswith="mmproj-F16.gguf")
    assert client.post(f"/issues/{finding.pk}/acknowledge/").status_code == 404
    assert client.post(f"/components/{part.pk}/pin/").status_code == 404
    loose = Finding.objects.get(path="/models/rest.gguf")
    assert client.post(f"/issues/{loose.pk}/acknowledge/").status_code == 302


def test_policy_says_something_instead_of_a_text_that_names_hidden_files(hush):
    html = browser(hush["person"]).get("/issues/").content.decode()
    assert "This names something that you may not see." in html
    assert 'issues/?level=warning">warnings <small>3</small>' in html or ">warnings" in html


def test_policy_keeps_what_a_person_does_not_see_when_they_save(hush, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    row = Row.objects.get(base_id="painting")
    client = browser(hush["person"])
    assert b"textEncoderPath" not in client.get(f"/models/{row.pk}/edit/").content
    stored = Override.objects.get(match=row.path)
    posted = {"version": stored.version, "ttlSec": "70", "textEncoderPath": "", "promptEnhancer": ""}
    assert client.post(f"/models/{row.pk}/edit/", posted).status_code == 302
    after = Override.objects.get(match=row.path).fields
    assert after == stored.fields | {"ttlSec": 70}


# Hosts


def test_policy_hides_a_host_but_not_the_models_that_are_granted(hush):
    Policy.objects.create(user=hush["person"], host=hush["host"], level=Level.NONE)
    Policy.objects.create(user=hush["person"], host=hush["host"], model="open*", level=Level.EDIT)
    client, shown = browser(hush["person"]), hush["shown"]
    machine("gpu-b")
    for address in ("/hosts/gpu-a/", "/hosts/gpu-a/fits/", "/hosts/gpu-a/card/", "/hosts/gpu-a/backends/"):
        assert client.get(address).status_code == 404
    for address in ("/", "/hosts/", "/components/?host=gpu-a"):
        assert "/hosts/gpu-a/" not in client.get(address).content.decode()
    assert listed(client, "/models/") == {shown.served_id}
    assert "Machine gpu-a" in client.get("/models/").content.decode()
    assert "/hosts/gpu-a/" not in client.get(f"/models/{shown.pk}/").content.decode()
    assert [host["slug"] for host in script(hush["person"]).get("/api/v1/hosts/").json()] == ["gpu-b"]


def test_policy_of_a_session_that_remembers_a_host(hush):
    client = browser(hush["person"])
    machine("gpu-b")
    client.get("/hosts/gpu-a/")
    Policy.objects.create(user=hush["person"], host=hush["host"], level=Level.NONE)
    assert "Machine gpu-a" not in client.get("/jobs/").content.decode()


# Variants


def test_policy_that_names_a_variant_goes_before_that_of_its_model(hush, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    row, client = hush["shown"], browser(hush["person"])
    variant = f"/models/{row.pk}/variants/{hush['variant']}/"
    posted = {"version": "1", "temp": "0.3"}
    Policy.objects.create(user=hush["person"], model=row.served_id, level=Level.VIEW)
    assert client.post(variant, posted).status_code == 403
    own = Policy.objects.create(user=hush["person"], model=f"{row.served_id}-fast", level=Level.EDIT)
    assert client.post(variant, posted).status_code == 302
    Policy.objects.filter(pk=own.pk).update(level=Level.NONE)
    assert client.get(variant).status_code == 404
    for page in (f"/models/{row.pk}/variants/", f"/api/v1/models/{row.pk}/plans/"):
        person = script(hush["person"]) if page.startswith("/api") else client
        assert f"{row.served_id}-fast" not in person.get(page).content.decode()


# Questions


def test_policy_of_sight_asks_about_names_and_paths(hush):
    sight = HostSight(hush["person"], hush["host"].pk)
    assert not sees_all(hush["person"], hush["host"])
    assert sight.names(f"because {hush['hidden'].path} is there")
    assert not sight.names("because hush-model-91 is there")
    assert not sight.sees("/models/never-seen-hush.gguf")
    assert sight.sees("/models/ae.safetensors")


def test_policy_that_is_beaten_everywhere_hides_nothing_whole(hush):
    Policy.objects.create(user=hush["person"], host=hush["host"], model="*Hush*", level=Level.VIEW)
    assert sees_all(hush["person"], hush["host"])


@pytest.mark.parametrize(
    "address", ["/models/?q=o&sort=-size", "/components/", "/issues/", "/hosts/", "/hosts/gpu-a/fits/"]
)
def test_policy_costs_lists_no_query_for_each_row(hush, address):
    client = browser(hush["person"])
    client.get("/")
    counts = []
    for numbers in (range(3), range(3, 30)):
        for number in numbers:
            row = place(hush["host"], f"open-{number}")
            place(hush["host"], f"hush-{number}")
            Finding.objects.create(host=hush["host"], row=row, kind="incomplete", path=row.path, text="cut short")
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        counts.append(len(queries))
    assert counts[1] <= counts[0]
    assert counts[1] <= 12


def test_policy_that_lets_edit_some_models_offers_them_as_a_filter(make_user):
    host = Host.objects.create(slug="gpu-a", name="A")
    for name in ("wide-vl", "narrow"):
        place(host, name)
    vera, otto = make_user("viewer", "vera"), make_user("operator", "otto")
    assert "That I may edit" not in browser(vera).get("/models/").content.decode()
    Policy.objects.create(user=vera, model="*vl*", level=Level.EDIT)
    page = browser(vera).get("/models/?state=editable").content.decode()
    assert '<option value="editable" selected>' in page
    assert ("wide-vl" in page, "narrow" in page) == (True, False)
    assert "wide-vl" not in browser(otto).get("/models/?state=editable").content.decode()


def test_policy_that_hides_every_host_is_what_empty_pages_speak_of(make_user):
    place(Host.objects.create(slug="gpu-a", name="A"), "hush")
    person = make_user("viewer")
    Policy.objects.create(user=person, model="*", level=Level.NONE)
    for address in ("/", "/models/", "/components/", "/hosts/"):
        page = browser(person).get(address).content.decode()
        assert "Nothing here for you" in page
        assert "./quartermaster up" not in page
        assert "Choose folders" not in page
