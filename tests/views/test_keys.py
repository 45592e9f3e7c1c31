"""The pages of API keys: for administrators alone, each secret on one page and never again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from gpus_app.models import Host
from models_app.models import ApiKey, Row
from tests.views.conftest import run

FORM = {"name": "lab", "hosts": "local", "scope": "all", "expires": "never", "future": "on"}


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def post(admin: Client, django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    def send(address: str, **values: Any) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: admin.post(address, values))

    return send


@pytest.fixture
def target(scanned: Host, tmp_path: Path, post: Callable[..., Any]) -> Path:
    path = tmp_path / "router.yaml"
    post("/config/local/target/", path=str(path), dialect="quartermaster")
    post(f"/config/local/{scanned.revisions.first().number}/write/")
    assert path.exists()
    return path


def secret_on(answer: Any) -> str:
    return str(answer.content.decode().split('<ol class="q-cmd mb-3"><li>')[1].split("</li>")[0])


def page(client: Client, address: str = "/keys/") -> str:
    return client.get(address).content.decode()


def test_no_keys_yet(scanned: Host, admin: Client) -> None:
    html = page(admin)
    assert "Without one a router answers anyone" in html
    assert "not required" in html


def test_a_secret_is_shown_once(target: Path, admin: Client, post: Callable[..., Any]) -> None:
    answer = post("/keys/new/", **FORM, once="abc")
    secret = secret_on(answer)
    assert secret.startswith("qm-")
    assert "no-store" in answer["Cache-Control"]
    assert secret in target.read_text()
    again = post("/keys/new/", **FORM, once="abc")
    assert "This form was sent before" in again.content.decode()
    assert ApiKey.objects.filter(is_service=False).count() == 1
    for address in ("/keys/", f"/keys/{ApiKey.objects.get(name='lab').pk}/", "/config/local/", "/", "/audit/"):
        assert secret not in page(admin, address), address
    html = page(admin)
    assert secret[:8] in html
    assert "live" in html
    assert "all models" in html


def test_the_worker_key_is_on_no_page(target: Path, admin: Client, post: Callable[..., Any]) -> None:
    post("/keys/new/", **FORM)
    service = ApiKey.objects.get(is_service=True)
    assert service.name not in page(admin)
    assert admin.get(f"/keys/{service.pk}/").status_code == 404


def test_what_is_wrong_stands_beside_its_field(scanned: Host, post: Callable[..., Any]) -> None:
    answer = post("/keys/new/", **{**FORM, "name": " ", "scope": "only"})
    assert answer.status_code == 422
    answer = post("/keys/new/", **{**FORM, "scope": "only"})
    assert "an empty choice never means all" in answer.content.decode()
    answer = post("/keys/new/", **{**FORM, "expires": "date"})
    assert "Choose the day on which it ends" in answer.content.decode()
    answer = post("/keys/new/", **{**FORM, "expires": "date", "date": "2001-01-01"})
    assert "This is over already" in answer.content.decode()
    assert not ApiKey.objects.exists()


def test_only_these_models_now_and_later(target: Path, admin: Client, post: Callable[..., Any]) -> None:
    row = Row.objects.get(served_id__startswith="qwen3-8b")
    chosen = {**FORM, "scope": "only", "models": [f"file:{row.path}"]}
    post("/keys/new/", **chosen)
    key = ApiKey.objects.get(name="lab")
    assert (key.files, key.ids) == ([row.path], [])
    assert "1 choice" in page(admin)
    chosen.pop("future")
    post(f"/keys/{key.pk}/", **chosen, version="1")
    key.refresh_from_db()
    assert key.files == []
    assert row.served_id in key.ids
    assert "selected" in page(admin, f"/keys/{key.pk}/")


def test_withheld_with_the_reason(scanned: Host, admin: Client, post: Callable[..., Any]) -> None:
    row = Row.objects.get(served_id__startswith="qwen3-8b")
    post("/keys/new/", **{**FORM, "scope": "only", "models": [f"file:{row.path}"]})
    assert "llama-swap cannot limit a key to some models" in page(admin)


def test_rotate_and_revoke(target: Path, admin: Client, post: Callable[..., Any]) -> None:
    post("/keys/new/", **FORM)
    key = ApiKey.objects.get(name="lab")
    fresh = secret_on(post(f"/keys/{key.pk}/rotate/", days="7"))
    assert fresh in target.read_text()
    assert "lab (old)" in page(admin)
    assert post(f"/keys/{key.pk}/rotate/", days="x").status_code == 422
    new = ApiKey.objects.get(name="lab")
    assert "cannot be taken back" in page(admin, f"/keys/{new.pk}/revoke/")
    post(f"/keys/{new.pk}/revoke/")
    assert fresh not in target.read_text()
    assert "revoked" in page(admin)


def test_a_host_out_of_reach_keeps_a_revoked_key_for_a_while(
    target: Path, admin: Client, post: Callable[..., Any]
) -> None:
    post("/keys/new/", **FORM)
    from datetime import timedelta

    from django.utils import timezone

    Host.objects.update(last_seen_at=timezone.now() - timedelta(hours=1))
    monkey = ApiKey.objects.get(name="lab")
    ApiKey.objects.filter(pk=monkey.pk).update(revoked_at=timezone.now())
    html = page(admin)
    assert "still valid" in html
    assert "host offline since" in html


def test_opening_a_router_takes_its_slug(target: Path, admin: Client, post: Callable[..., Any]) -> None:
    post("/keys/new/", **FORM)
    post(f"/keys/{ApiKey.objects.get(name='lab').pk}/revoke/")
    answer = post("/keys/hosts/local/", required="0", slug="wrong")
    assert answer.status_code == 422
    assert "Type local to confirm" in answer.content.decode()
    post("/keys/hosts/local/", required="0", slug="local")
    assert "apiKeys" not in target.read_text()
    assert "its router answers anyone" in page(admin)


def test_two_who_edit_at_once(scanned: Host, post: Callable[..., Any]) -> None:
    post("/keys/new/", **FORM)
    key = ApiKey.objects.get(name="lab")
    assert post(f"/keys/{key.pk}/", **{**FORM, "note": "one"}, version="1").status_code == 302
    assert post(f"/keys/{key.pk}/", **{**FORM, "note": "two"}, version="1").status_code == 409


def test_queries_do_not_grow(
    target: Path, admin: Client, post: Callable[..., Any], django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        post("/keys/new/", **{**FORM, "name": f"lab {number}"})
    with django_assert_max_num_queries(12):
        page(admin)


def test_variables_in_place_of_secrets(target: Path, admin: Client, post: Callable[..., Any]) -> None:
    post("/keys/new/", **FORM)
    address, numbers = "/keys/hosts/local/environment/", list(ApiKey.objects.values_list("pk", flat=True))
    html = page(admin, address)
    assert all(f"QM_ROUTER_KEY_{number}" in html for number in numbers)
    assert "cannot be seen from here" in html
    answer = post(f"{address}file/")
    assert answer["Content-Disposition"] == 'attachment; filename="router-keys.env"'
    assert "no-store" in answer["Cache-Control"]
    assert post(address, intent="names", key=numbers).status_code == 422, "without the tick"
    assert post(address, intent="names", key=numbers, sure="on").status_code == 302
    assert "${env.QM_ROUTER_KEY_" in target.read_text()
    fresh = post("/keys/new/", **{**FORM, "name": "later"}).content.decode()
    later = ApiKey.objects.get(name="later")
    assert f"QM_ROUTER_KEY_{later.pk}=qm-" in fresh
    assert f"QM_ROUTER_KEY_{later.pk} is to be set" in page(admin)
    assert post(address, intent="set", key=[later.pk], sure="on").status_code == 302
    assert f"QM_ROUTER_KEY_{later.pk}" in target.read_text()
    post(address, intent="inline")
    assert "${env." not in target.read_text()
