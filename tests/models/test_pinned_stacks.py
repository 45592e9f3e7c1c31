"""Saves through the real services, over random stacks of pins: previews, stored plans and written files agree, and
what changes nothing leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpus_app.models import Device, Host, HostSetting
from models_app import convert, services
from models_app.core.fields.groups import model_fields
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.tokens import split_command
from models_app.core.spawn_guard.options import guard_apart
from models_app.core.state.checks import Limits, joint_problems
from models_app.core.state.editor import editor_save
from models_app.models import Change, Override, Revision, Root, Row
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Account, AuditEntry, Installation
from quartermaster_site.jobs.models import Job
from tests.override_stacks import NEVER, Kind, form_values, host_settings, launch_texts
from tests.page_forms import PageForm, forms_of
from tests.zoo import zoo

LIMITS = Limits(trained_tokens=40_960, block_count=36, device_count=2)
FIELDS = model_fields("llm", "llama")
BY_KEY = {field.key: field for field in FIELDS}
CHAT = Kind("llm", "llama", LLAMA, "(the model)", "Q4_K_M", LIMITS)
STORED = settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    zoo.write_model("qwen3-8b-q4_k_m", str(folder))
    return folder


@pytest.fixture
def row(host, folder, django_capture_on_commit_callbacks):
    """One chat model on a host with two cards, planned."""
    for index, size in enumerate((24, 12)):
        Device.objects.create(
            host=host, index=index, name=f"GPU {index}", total_bytes=size << 30, free_bytes=size << 30
        )
    Host.objects.filter(pk=host.pk).update(ram_total_bytes=64 << 30, ram_available_bytes=58 << 30)
    HostSetting.objects.create(host=host, section="memory", values={"targetVramGB": 33.0, "maxRamGB": 48.0}, version=1)
    Root.objects.create(host=host, path=str(folder))
    with django_capture_on_commit_callbacks(execute=True):
        services.start_scan(host=host, actor=Actor())
    return Row.objects.select_related("host").get()


@pytest.fixture
def bench(row, make_user, django_capture_on_commit_callbacks):
    """Acts on the model as an editor who may write launch arguments."""
    user = make_user("editor")
    Account.objects.filter(user=user).update(custom_args=True)
    user = get_user_model().objects.get(pk=user.pk)
    return Bench(row, Actor(user=user, name=user.username), django_capture_on_commit_callbacks)


class Bench:
    def __init__(self, row: Row, actor: Actor, capture: Any) -> None:
        self._pk, self.actor, self._capture = row.pk, actor, capture

    @property
    def row(self) -> Row:
        return Row.objects.select_related("host").get(pk=self._pk)

    def save(self, values: dict[str, Any]) -> None:
        row = self.row
        with self._capture(execute=True):
            version = services.pinned(row).version
            services.save_override(row=row, values=values, version=version, actor=self.actor)

    def browse(self) -> Client:
        client = Client()
        client.force_login(self.actor.user)
        return client

    def post(self, client: Client, address: str, data: dict[str, str]) -> Any:
        with self._capture(execute=True):
            return client.post(address, data)

    def pin(self, stack: tuple[dict[str, Any], list[Any], list[Any]], dialect: str) -> None:
        """Make the database what the stack says, and write the file of that state."""
        fleet, shared, rows = stack
        host = self.row.host
        Host.objects.filter(pk=host.pk).update(publish_dialect=dialect)
        memory = HostSetting.objects.get(host=host, section="memory")
        HostSetting.objects.filter(pk=memory.pk).update(values={**fleet, **memory.values})
        variants = [{**convert.variant_fields(variant), "name": variant.name} for variant in shared]
        HostSetting.objects.create(host=host, section="variants", values={"defaultVariants": variants}, version=1)
        for position, drawn in enumerate(rows):
            pinned = editor_save(drawn, drawn.match, {}, form_keys=[])  # as a save leaves it
            match = self.row.path if pinned.match == CHAT.path else pinned.match
            fields = convert.override_fields(pinned)
            refused = joint_problems({"device": "", **fields}, LIMITS)  # a form with them would not be saved
            stored = Override.objects.create(
                host=host,
                match=match,
                quant="" if match == self.row.path else pinned.quant,
                position=position,
                fields={key: value for key, value in fields.items() if key not in refused},
                version=1,
            )
            for variant in pinned.variants:
                stored.variants.create(name=variant.name, fields=convert.variant_fields(variant), version=1)
        self.plan()

    def plan(self) -> None:
        from gpus_app.services import request_plan

        with self._capture(execute=True):
            request_plan(host=self.row.host, actor=self.actor)

    @property
    def commands(self) -> list[tuple[str, tuple[str, ...]]]:
        return [
            (plan.profile_id, plan.argv) for plan in services.preview_plan(row=self.row).plans if not plan.skip_reason
        ]

    @property
    def fields(self) -> dict[str, Any]:
        return services.pinned(self.row).fields

    @property
    def body(self) -> str:
        text = Revision.objects.order_by("-number").first().text
        return "\n".join(line for line in text.splitlines() if not line.startswith(("#", ";")))

    @property
    def written(self) -> dict[str, list[str]]:
        """Id -> the words of its command in the file."""
        models = yaml.safe_load(self.body)["models"] or {}
        return {name: split_command(entry["cmd"]) for name, entry in models.items()}


def traces() -> tuple[int, ...]:
    tables = (Override, Change, AuditEntry, Job, Revision)
    return tuple(table.objects.count() for table in tables)


@contextmanager
def undone() -> Iterator[None]:
    """Nothing of what happens inside stays."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


pins = st.tuples(host_settings(), CHAT.variants("fast", "shared", most=1), CHAT.rows())
dialects = st.sampled_from(["quartermaster", "llama-swap"])
forms = st.builds(
    lambda values, text: {**values, **({"customArgs": text} if text else {})},
    form_values(FIELDS, LIMITS),
    st.one_of(st.just(""), launch_texts(LLAMA)),
)


@pytest.mark.slow
@STORED
@given(stack=pins, form=forms, dialect=dialects)
def test_preview_stored_plan_and_file_have_the_same_words(bench, stack, form, dialect):
    with undone():
        bench.pin(stack, dialect)
        row = bench.row
        previewed = services.edited(row, services.pinned(row).override, form, is_moe=False)
        shown = services.preview_plan(row=row, override=previewed).plans
        bench.save(form)
        saved = services.preview_plan(row=bench.row).plans
        assert [(plan.profile_id, plan.argv) for plan in saved] == [(plan.profile_id, plan.argv) for plan in shown]
        written = bench.written
        for plan in saved:
            if plan.profile_id in written:
                argv = list(plan.argv)
                if dialect == "llama-swap" and "--slot-save-path" in argv:
                    continue
                assert guard_apart(written[plan.profile_id])[1] == argv
        stored, text = traces(), bench.body
        bench.save(form)
        bench.save({field.key: bench.fields.get(field.key, field.absent) for field in FIELDS})
        assert (traces(), bench.body) == (stored, text), "saving again changes nothing"


@pytest.mark.slow
@STORED
@given(stack=pins, dialect=dialects, data=st.data())
def test_setting_a_field_and_clearing_it_restores_the_bytes(bench, stack, dialect, data):
    with undone():
        bench.pin(stack, dialect)
        bench.save({"ttlSec": bench.fields.get("ttlSec", 77)})  # what the model has of its own, as a save leaves it
        fields, text = bench.fields, bench.body
        key = data.draw(st.sampled_from([field.key for field in FIELDS if field.key not in {*fields, *NEVER}]))
        bench.save(data.draw(form_values([BY_KEY[key]], LIMITS, least=1, most=1)))
        bench.save({key: BY_KEY[key].absent})
        assert bench.fields == fields
        assert bench.body == text


def editor_forms(client: Client, page: str) -> list[PageForm]:
    """The forms of a page that have a version: those that change what is pinned."""
    return [form for form in forms_of(client.get(page).content.decode()) if "version" in form.values]


@pytest.mark.slow
@STORED
@given(stack=pins, dialect=dialects)
def test_an_untouched_form_that_is_saved_leaves_no_trace(bench, stack, dialect):
    Installation.objects.update_or_create(pk=1, defaults={"setup_finished_at": timezone.now()})
    with undone():
        bench.pin(stack, dialect)
        client, stored, text = bench.browse(), traces(), bench.body
        variants = Override.objects.filter(match=bench.row.path, quant="").values_list("variants", flat=True)
        model, host = f"/models/{bench.row.pk}", bench.row.host.slug
        pages = [f"{model}/edit/", f"{model}/launch/"]
        pages += [f"{model}/variants/{variant}/" for variant in variants if variant]
        pages += [f"/fleet-variants/{host}/{variant.name}/" for variant in stack[1]]
        rules = Override.objects.filter(match__contains="*").values_list("pk", flat=True)
        pages += [f"/hosts/{host}/rules/{rule}/" for rule in rules]
        seen = 0
        for page in pages:
            for form in editor_forms(client, page):
                data = {**form.values, **({"intent": "save"} if ("intent", "save") in form.buttons else {})}
                answer = bench.post(client, form.action or page, data)
                assert answer.status_code in (200, 302), (page, answer.status_code, answer.context["form"].errors)
                assert (traces(), bench.body) == (stored, text), page
                seen += 1
        assert seen >= len(pages)
