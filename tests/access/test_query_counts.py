"""The number of queries of a page does not grow with what it shows."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from models_app.models import Change, Component, Finding, Override, Revision
from quartermaster_site.jobs.models import Job
from tests.access.conftest import add_model

LISTS = [
    "/models/",
    "/models/?q=model&sort=-size",
    "/components/",
    "/issues/",
    "/hosts/",
    "/hosts/local/",
    "/hosts/local/fits/",
    "/hosts/local/live/",
    "/hosts/local/rules/",
    "/hosts/local/history/",
    "/hosts/local/backends/",
    "/hosts/local/by-hand/",
    "/config/local/revisions/",
    "/jobs/",
    "/access/users/",
    "/access/network/",
    "/audit/",
]
MOST = 12


@pytest.fixture
def admin_client(client, make_user):
    client.force_login(make_user("admin"))
    client.get("/")
    return client


def queries(client, path):
    with CaptureQueriesContext(
        connection,
    ) as context:
        response = client.get(path)
    assert response.status_code == 200
    return [query["sql"] for query in context.captured_queries]


@pytest.mark.parametrize("path", LISTS)
def test_lists_take_at_most_twelve(admin_client, host, root, installation, path):
    few = queries(admin_client, path)
    for number in range(2, 42):
        row = add_model(host, root, number)
        Finding.objects.create(host=host, row=row, kind="incomplete", path=row.path, text="cut short")
        add_model(host, root, number, "Q8_0")
        Component.objects.create(host=host, path=f"/models/{number}.safetensors", role="vae", family="flux")
        Job.objects.create(kind="browse", host=host, token="t", state="succeeded")
        Revision.objects.create(host=host, number=number, dialect="llama-swap", text="# x", sha256=str(number))
        Override.objects.create(host=host, match=f"*model-{number}?*", version=1, position=number)
        Change.objects.create(host=host, match="*x*", rule=number, action="save", version=1, changes={"ctx": [0, 1]})
        Finding.objects.create(host=host, kind="header-unreadable", path=f"/models/{number}.gguf", text="broken")
    many = queries(admin_client, path)
    assert len(many) <= MOST, "\n".join(many)
    assert len(many) <= len(few) + 1, "\n".join(many)


@pytest.mark.parametrize(
    "path",
    ["/", "/models/{model}/", "/models/{model}/files/", "/config/local/", "/config/local/review/", "/jobs/{job}/"],
)
def test_other_pages_stay_small(admin_client, installation, path):
    found = queries(admin_client, path.format(**installation))
    assert len(found) <= 22, "\n".join(found)
