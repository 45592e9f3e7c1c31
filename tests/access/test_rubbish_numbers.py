"""Every number of every form, fed with rubbish: 422 and a message at the field, on the page and in a preview."""

from __future__ import annotations

import re

import pytest
from django.core.cache import cache
from django.test import Client

from gpus_app.models import Backend, HostSetting
from models_app.core.fields import OVERRIDE_FIELDS, VARIANT_FIELDS
from models_app.core.fields.field import INTEGER, INTEGERS, NUMBER
from models_app.core.fields.groups import model_fields
from models_app.models import Override, Root, Row
from models_app.views import model_detail, model_edit
from quartermaster_site.rate import RateLimit
from tests.access.url_table import ADMIN, ASK, READ
from tests.page_forms import PageForm, forms_of

RUBBISH = {
    "apostrophe": "12'3",
    "exponent": "1e309",
    "not a number": "NaN",
    "endless": "inf",
    "huge": "1" + "0" * 30,
    "negative": "-999999999999",
    "separators": "1.234.567",
    "blanks": "1 2.5",
    "Arabic digits": "١٢٣",
    "NUL": "1\x00",
}
PREVIEWED = ("exponent", "not a number", "Arabic digits")
"""A preview reads the same controls: a few will do."""
OFF_BELOW_ZERO = {"oomGuardReserveGB", "minGpuFraction"}
"""Any negative number switches these off."""
MOST_AT_ONCE = 4
LONG = "9" * 2_000_000
CATALOGUE = {field.key for field in (*OVERRIDE_FIELDS, *VARIANT_FIELDS) if field.kind in (INTEGER, NUMBER, INTEGERS)}
CLASSES = {"image": "sd", "video": "sd", "hf": "vllm", "audiocpp": "audiocpp", "tts": "tts", "embedding": "llama"}
"""Further models, so that every field of the catalogue has a form, and what runs them."""


@pytest.fixture
def admin(make_user):
    client = Client(raise_request_exception=False)
    client.force_login(make_user(ADMIN))
    return client


@pytest.fixture
def pages(installation, host, monkeypatch):
    """Addresses of all pages, those of models of every class among them."""
    endless = RateLimit(per_second=5, burst=100_000)
    monkeypatch.setattr(model_detail, "PREVIEWS", endless)
    monkeypatch.setattr(model_edit, "PREVIEWS", endless)
    cache.clear()
    root = Root.objects.get()
    addresses = [path.format(**installation) for path in (*READ, *ASK)]
    flags = [field.flag for field in OVERRIDE_FIELDS if field.flag]
    for name, kind in CLASSES.items():
        path = f"{root.path}/{name}.bin"
        Backend.objects.create(
            host=host, slug=f"my-{name}", kind=kind, path=f"/opt/{name}/server", probe={"flags": flags}
        )
        row = Row.objects.create(
            host=host,
            root=root,
            path=path,
            served_id=name,
            base_id=name,
            file_name=f"{name}.bin",
            size_bytes=1 << 30,
            model_class=name,
            found={
                "id": name,
                "full_path": path,
                "file_name": f"{name}.bin",
                "model_class": name,
                "size_bytes": 1 << 30,
            },
        )
        own = Override.objects.create(host=host, match=path, fields={}, version=1)
        variant = own.variants.create(name="v", fields={}, version=1)
        addresses += [f"/models/{row.pk}/edit/", f"/models/{row.pk}/variants/{variant.pk}/"]
    HostSetting.objects.filter(host=host, section="memory").delete()
    return addresses


def number_forms(client: Client, pages: list[str]) -> dict[str, PageForm]:
    """Page -> each form on it that asks for numbers, by page and action."""
    found = {}
    for page in pages:
        answer = client.get(page)
        if answer.status_code == 200 and "html" in answer.get("Content-Type", ""):
            for form in forms_of(answer.content.decode()):
                if form.numbers:
                    found[f"{page} -> {form.action or page}"] = form
    return found


@pytest.mark.slow
def test_every_number_answers_422_and_says_why(admin, pages):
    forms = number_forms(admin, pages)
    keys = {name for form in forms.values() for name in numbers(form)}
    assert keys >= CATALOGUE, "a number of the catalogue that no form asks for"
    for place, form in forms.items():
        address = form.action or place.split(" ")[0]
        for name, typed in RUBBISH.items():
            what = f"{place}: {name}"
            check(admin, form, address, dict.fromkeys(numbers(form), typed), what)
            if form.preview and name in PREVIEWED:
                check(admin, form, form.preview, dict.fromkeys(numbers(form), typed), f"{what}, preview", preview=True)
        if form.method == "post":
            check(admin, form, address, {numbers(form)[0]: LONG}, f"{place}: long")


def numbers(form: PageForm) -> list[str]:
    """Controls of a form that take numbers, lists of them among these."""
    return [name for name in form.controls if name in form.numbers or name in CATALOGUE]


def check(
    client: Client, form: PageForm, address: str, typed: dict[str, str], what: str, *, preview: bool = False
) -> None:
    """The form with these texts is refused, with words at each of them."""
    send = client.get if form.method == "get" else client.post
    answer = send(address, {**form.values, **typed}, headers={"HX-Request": "true"} if preview else {}, follow=True)
    assert answer.status_code == 422, (what, answer.status_code, answer.get("Location"))
    html = answer.content.decode()
    silent = [name for name in typed if not said_at(html, name)]
    if "negative" in what:
        silent = [name for name in silent if name not in OFF_BELOW_ZERO]
    assert not silent, f"{what}: nothing is said at {silent}"


def said_at(html: str, name: str) -> bool:
    """Whether the slot of a control's errors holds words."""
    slot = rf'id="(?:e-{re.escape(name)}|[a-z]+[-_]{re.escape(name)}_error)"[^>]*>'
    return bool(re.search(rf"{slot}(?:\s|<(?!/p|/div|/li)[^>]+>|</svg>)*[^<\s]", html))


def test_many_models_at_once_take_no_rubbish_either(admin, pages):
    row = Row.objects.get(model_class="llm")
    stored = Override.objects.get(match=row.path).fields
    keys = sorted(CATALOGUE & {field.key for field in model_fields("llm", "llama")})
    for start in range(0, len(keys), MOST_AT_ONCE):
        some = keys[start : start + MOST_AT_ONCE]
        for name in PREVIEWED:
            data = {"rows": f"{row.pk}:1", "intent": "apply"}
            for number, key in enumerate(some, 1):
                data |= {f"key-{number}": key, f"value-{number}": RUBBISH[name]}
            answer = admin.post("/models/bulk/", data)
            assert answer.status_code in (200, 422), (some, name, answer.status_code)
            assert answer.content.decode().count("You typed") >= len(some), (some, name)
    assert Override.objects.get(match=row.path).fields == stored
