"""Stored XSS: markup in every text that a file, a program or a person can choose, on every page of the product."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from quartermaster_site.jobs.models import Job
from tests.access.url_table import ASK, HTMX, READ
from tests.security import hostile_rows
from tests.security.hostile_rows import JSON_MARKS, MARKS, payload, word
from tests.security.markup import Page

pytestmark = pytest.mark.xdist_group("stored-markup")
MORE = (
    "/models/{talker}/",
    "/models/{talker}/files/",
    "/issues/?level=acknowledged",
    "/models/?q=x",
    "/components/?tab=projectors",
    "/jobs/?state=failed",
)
SHOW_TROUBLE = ("/models/", "/hosts/", "/config/local", "/issues/", "/voices/", "/router/", "/jobs/")
FRAGMENTS = (
    *("/models/", "/issues/", "/jobs/", "/components/", "/audit/", "/voices/local/", "/router/local/"),
    *(
        "/hosts/local/card/",
        "/models/1/",
        "/models/1/row/",
        "/models/1/edit/",
        "/jobs/1/panel/",
        "/config/local/review/",
    ),
)
SHOWN = set(
    """
    ApiKey.ids ApiKey.name ApiKey.note ApiToken.name AuditEntry.actor AuditEntry.changes AuditEntry.object_label
    AuditEntry.reason Audition.request Backend.build Backend.name Backend.path Backend.probe Backend.variant
    Backend.version Change.actor Change.changes Change.match CheckProgram.build CheckProgram.path
    Component.family Component.path Component.recognised_by Device.eligible_reason Device.name Finding.path
    Finding.text Fragment.served_id HeaderFacts.error HeaderFacts.facts Host.name Host.probe_note
    Host.publish_path Host.worker_version HostSetting.groups HostSetting.promptEnhancers ImportBatch.findings
    ImportBatch.name ImportBatch.problem Job.advice Job.current Job.error Job.log Job.object_label Job.phase
    Job.phases Job.result Job.state_reason Override.fields Override.match Override.quant Revision.findings
    Revision.message Revision.summary Revision.text Root.path Root.state_reason Router.listed.alias
    Router.listed.id Router.problem Router.program_version Router.url Row.base_id Row.class_reason
    Row.family_key Row.file_name Row.path Row.quant Row.quant_label Row.served_id Row.state_reason
    SpeechServer.listed SpeechServer.problem SpeechServer.url StoredPlan.placement_text StoredPlan.profile_id
    TargetWatch.problem User.email User.username Variant.name Verification.build Verification.notes Voice.name
    """.split()  # noqa: SIM905
) | {
    "Group.name",
    "NetworkList.note",
    "ImportBatch.report value",
    "ImportBatch.report source",
    "HostSetting.enhancer text",
}
"""What pages show of all that is replaced: of these columns something is proven here."""


@pytest.fixture(scope="module")
def hostile(tree):
    hostile_rows.fill(tree)
    return tree


def addresses(tree):
    jobs = [f"/jobs/{number}/" for number in Job.objects.values_list("pk", flat=True)]
    by_hand = urlencode({"of": word("HostSetting.promptEnhancers")})
    known = [path.format(**tree) for path in (*READ, *ASK, *MORE)]
    return [path.replace("of=pe", by_hand) for path in known] + jobs


def walk(client, found, headers):
    """What would run on any page, and the marks that pages have shown."""
    bad, texts = [], set()
    for address in found:
        answer = client.get(address, headers=headers)
        assert answer.status_code in (200, 286, 302, 404, 422), address
        if "html" in answer["Content-Type"]:
            page = Page(answer.content.decode())
            bad += [f"{address}: {fault}" for fault in page.faults]
            texts |= {*page.texts}
    text = "\n".join(texts)
    return bad, {name for name, mark in (MARKS | JSON_MARKS).items() if mark in text}


def test_no_text_becomes_markup(visit, hostile):
    """As everything runs, as fragments, and where everything is broken."""
    client = visit("admin", headers={"user-agent": payload("zqagent", 200)}, raise_request_exception=True)
    found = addresses(hostile)
    bad, seen = walk(client, found, {})
    troubled = [path for path in found if path.startswith(SHOW_TROUBLE)]
    in_parts, _ = walk(client, FRAGMENTS, HTMX)
    hostile_rows.break_things(hostile)
    when_broken, then_seen = walk(client, troubled, {})
    assert not bad + in_parts + when_broken
    unseen = SHOWN - seen - then_seen
    assert not unseen, "no page shows these any more"
    assert "zqagent" in client.get("/account/").content.decode()
