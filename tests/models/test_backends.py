"""The registry of a host's executables: who may change it, what a change does to plans and to the exported file."""

from __future__ import annotations

import pytest

from gpus_app.models import Backend, Device
from gpus_app.selectors import get_host
from gpus_app.services import save_device_settings
from models_app import convert
from models_app.core.catalog import Header
from models_app.core.catalog import Row as CoreRow
from models_app.core.export.entry import plan_env
from models_app.core.export.environment import entry_env
from models_app.core.settings import LoraRef, Variant
from models_app.core.settings import Override as CoreOverride
from models_app.models import Override, Root, Row
from models_app.pages.host_page import machine_of
from models_app.pages.plan_panel import plan_panel
from models_app.selectors.backends import host_backends
from models_app.services.backend_facts import BackendFacts
from models_app.services.backends import BackendValues, add_backend, remove_backend, save_backend, star_backend
from models_app.services.command_findings import command_findings, refused_words
from models_app.services.plan_notes import PlanNotes
from models_app.services.planning import HostPlanner, host_facts
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from tests.seer import seer


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


@pytest.fixture
def add(host, actor):
    def backend(kind, path, **more):
        slug = more.pop("slug", "")
        return add_backend(host=host, values=BackendValues(kind, path, **more), slug=slug, actor=actor)

    return backend


@pytest.fixture
def model(host):
    root = Root.objects.create(host=host, path="/models", state="ok")

    def row(name, model_class="llm", **more):
        path = f"/models/{name}.gguf"
        return Row.objects.create(
            host=host, root=root, path=path, served_id=name, file_name=f"{name}.gguf", model_class=model_class, **more
        )

    return row


def settings(host):
    return convert.core_settings(get_host(host.slug))


def test_a_backend_is_stored_under_the_canonical_kind_and_an_id_of_its_own(add, host):
    first, second = add("llama.cpp", "/opt/a/llama-server"), add("Server", "/opt/b/llama-server")
    assert [(row.kind, row.slug) for row in (first, second)] == [("llama", "llama"), ("llama", "llama-2")]
    assert add("llama", "/opt/a/llama-server") == first, "twice the same is once"
    assert AuditEntry.objects.filter(action="backend.add").count() == 2


def test_ids_are_unique_on_a_host(add):
    add("llama", "/opt/a/llama-server", slug="mine")
    with pytest.raises(Refused) as refused:
        add("llama", "/opt/b/llama-server", slug="mine")
    assert "taken" in refused.value.fields["slug"]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("kind", {"kind": "espresso"}),
        ("path", {"path": "llama-server"}),
        ("path", {"path": "/opt/folder/"}),
        ("path", {"path": "/opt/a\nb"}),
        ("path", {"path": "/" + "x" * 1024}),
        ("name", {"name": "x" * 101}),
        ("variant", {"variant": "cuda; rm"}),
    ],
)
def test_a_bad_value_is_refused_by_field(add, field, values):
    with pytest.raises(Refused) as refused:
        add(**{"kind": "llama", "path": "/opt/a/llama-server", **values})
    assert list(refused.value.fields) == [field]
    assert not Backend.objects.exists()


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
def test_only_administrators_change_it(host, add, make_user, role):
    row = add("llama", "/opt/a/llama-server")
    person = Actor(user=make_user(role), name=role)
    values = BackendValues("llama", "/opt/b/llama-server")
    for change in (
        lambda: add_backend(host=host, values=values, actor=person),
        lambda: save_backend(backend=row, values=values, edition=1, actor=person),
        lambda: star_backend(backend=row, starred=True, actor=person),
        lambda: remove_backend(backend=row, actor=person),
    ):
        with pytest.raises(NotAllowed):
            change()


def test_plans_take_the_first_of_a_class_and_a_star_before_it(add, host, actor):
    add("llama", "/opt/a/llama-server")
    second = add("llama", "/opt/b/llama-server", variant="vulkan")
    assert settings(host).server_exe == "/opt/a/llama-server"
    assert settings(host).sd_server_exe == "/opt/a/sd-server", "the others stand beside it"
    star_backend(backend=second, starred=True, actor=actor)
    found = settings(host)
    assert found.server_exe == "/opt/b/llama-server"
    assert [(entry.id, entry.default, entry.variant) for entry in found.backends] == [
        ("llama", False, ""),
        ("llama-2", True, "vulkan"),
    ]


def test_a_star_is_taken_from_every_row_that_shares_a_class(add, actor):
    speech, recognition, audio = (
        add("tts", "/opt/tts-server"),
        add("asr", "/opt/parakeet-server"),
        add("audiocpp", "/opt/audiocpp_server"),
    )
    other = add("llama", "/opt/llama-server")
    for row in (speech, recognition, other):
        star_backend(backend=row, starred=True, actor=actor)
    star_backend(backend=audio, starred=True, actor=actor)
    assert set(Backend.objects.filter(starred=True).values_list("slug", flat=True)) == {"audiocpp", "llama"}


def test_of_two_who_edit_the_second_sees_what_is_stored(add, actor):
    row = add("llama", "/opt/a/llama-server")
    save_backend(backend=row, values=BackendValues("llama", "/opt/b/llama-server"), edition=1, actor=actor)
    with pytest.raises(EditConflict) as conflict:
        save_backend(backend=row, values=BackendValues("llama", "/opt/c/llama-server"), edition=1, actor=actor)
    assert conflict.value.saved["path"] == "/opt/b/llama-server"
    assert conflict.value.version == 2
    same = save_backend(backend=row, values=BackendValues("llama", "/opt/b/llama-server"), edition=1, actor=actor)
    assert same.edition == 2, "what is stored already changes nothing"


def test_another_path_forgets_what_the_old_file_said(add, actor):
    row = add("llama", "/opt/a/llama-server")
    Backend.objects.update(probe={"flags": ["-m"]}, banner_sha256="a" * 64, version="b1")
    saved = save_backend(backend=row, values=BackendValues("llama", "/opt/b/llama-server"), edition=1, actor=actor)
    assert (saved.probe, saved.banner_sha256, saved.version, saved.probed_at) == ({}, "", "", None)


def test_models_of_a_backend_and_what_runs_them_without_it(add, model, host):
    a, b = add("llama", "/opt/a/llama-server"), add("llama", "/opt/b/llama-server")
    kokoro = add("ttscpp", "/opt/tts.cpp/tts-server")
    for name in ("one", "two"):
        model(name)
    model("kokoro-82m", "tts", architecture="kokoro")
    model("embed", "embedding")
    Override.objects.create(host=host, match="/models/two.gguf", fields={"backend": b.slug}, version=1)
    found = host_backends(get_host(host.slug), seer())
    assert [item.served_id for item in found.models_of(a)] == ["embed", "one"]
    assert [item.served_id for item in found.models_of(b)] == ["two"]
    assert [item.served_id for item in found.models_of(kokoro)] == ["kokoro-82m"]
    assert [(item.served_id, program.path) for item, program in found.without(b)] == [("two", "/opt/a/llama-server")]
    assert {program.path for _, program in found.without(a)} == {"/opt/b/llama-server"}


def test_a_pattern_pins_every_file_that_it_covers(add, model, host):
    add("llama", "/opt/a/llama-server")
    b = add("llama", "/opt/b/llama-server")
    model("one"), model("two")
    Override.objects.create(host=host, match="/models/*", fields={"backend": b.slug}, version=1)
    assert len(host_backends(get_host(host.slug), seer()).models_of(b)) == 2


def test_removing_one_asks_for_new_plans_and_is_remembered(add, actor, host):
    row = add("llama", "/opt/a/llama-server")
    remove_backend(backend=row, actor=actor)
    assert not Backend.objects.exists()
    assert settings(host).server_exe == "llama-server"
    entry = AuditEntry.objects.get(action="backend.remove")
    assert entry.changes["path"] == ["/opt/a/llama-server", None]
    remove_backend(backend=row, actor=actor)


GIB = 1 << 30
LISTED = [
    {"id": "CUDA1", "name": "NVIDIA GeForce RTX 3090", "total_bytes": 24 * GIB, "tag": ""},
    {"id": "CUDA0", "name": "NVIDIA GeForce RTX 3060", "total_bytes": 12 * GIB, "tag": ""},
]


@pytest.fixture
def two_cards(host):
    for index, (name, size) in enumerate([("NVIDIA GeForce RTX 3090", 24), ("NVIDIA GeForce RTX 3060", 12)]):
        Device.objects.create(
            host=host, index=index, name=name, vendor="nvidia", total_bytes=size * GIB, free_bytes=size * GIB
        )
    return get_host(host.slug)


def asked(host, slug="a", kind="llama", **facts):
    probe = {"problem": "", "kind": kind, "flags": ["--port"], "devices": LISTED, "notes": [], **facts}
    return Backend.objects.create(host=host, slug=slug, kind=kind, path=f"/opt/{slug}/server", probe=probe)


def test_a_launch_names_the_devices_as_its_executable_does_the_main_one_last(two_cards):
    asked(two_cards)
    budget = host_facts(two_cards).budget_for(CoreOverride())
    assert budget.backend_ids == ("CUDA0", "CUDA1")
    assert budget.device_names == ("NVIDIA GeForce RTX 3060", "NVIDIA GeForce RTX 3090")
    assert host_facts(two_cards).budget_for(CoreOverride(), "image").backend_ids == (), "another program"


def test_a_plan_numbers_the_devices_as_every_other_page_does(two_cards, zoo_header):
    """The launch lists the main one last, whatever its number is."""
    asked(two_cards)
    facts, header = host_facts(get_host(two_cards.slug)), zoo_header("qwen25-32b-q4_k_m")
    row = CoreRow(id="m", full_path="/m.gguf", model_class="llm")
    [plan, *_] = HostPlanner(facts, lambda _path: None)(row, header, CoreOverride())
    machine = machine_of(facts.launch_budget(CoreOverride()), 0)
    names = ["GPU 1 · NVIDIA GeForce RTX 3060", "GPU 0 · NVIDIA GeForce RTX 3090"]
    assert [device.name for device in machine.devices] == names
    panel = plan_panel(plan, machine, block_count=header.block_count)
    assert panel.columns == ("GPU 1", "GPU 0")
    assert {place.name for part in panel.parts for place in part.places} <= {"GPU 0", "GPU 1", "RAM"}
    [weights] = [part for part in panel.parts if part.key == "weights"]
    assert [place.name for place in weights.places][:2] == ["GPU 1", "GPU 0"]


def test_a_variant_on_other_devices_than_its_model_is_shown_beside_them(two_cards, zoo_header):
    asked(two_cards, devices=[device | {"id": f"CUDA{number}"} for number, device in enumerate(LISTED[:2])])
    facts, header = host_facts(get_host(two_cards.slug)), zoo_header("llama31-8b-q4_k_m")
    variants = (Variant(name="own", tensor_split="0.7,0.3"), Variant(name="alone", split_mode="none"))
    row = CoreRow(id="m", full_path="/m.gguf", model_class="llm")
    plans = HostPlanner(facts, lambda _path: None)(row, header, CoreOverride(ctx=8192, variants=variants))
    machine = machine_of(facts.launch_budget(CoreOverride()), 0)
    shown = {plan.profile_id: plan_panel(plan, machine, block_count=header.block_count) for plan in plans}
    names = {key: [line.name for line in panel.bar.rows] for key, panel in shown.items()}
    card_0, card_1 = "GPU 0 · NVIDIA GeForce RTX 3090", "GPU 1 · NVIDIA GeForce RTX 3060"
    assert names == {"m": [card_1, card_0], "m-own": [card_0, card_1], "m-alone": [card_0]}
    assert shown["m-own"].columns == ("GPU 0", "GPU 1")


def test_an_adapters_scale_is_written_as_its_executable_reads_it(two_cards, zoo_header):
    own, header = CoreOverride(loras=(LoraRef("/l/a.gguf", 0.5),)), zoo_header("qwen3-0.6b-q8_0")
    row = CoreRow(id="m", full_path="/m.gguf", model_class="llm")

    def written():
        return HostPlanner(host_facts(get_host(two_cards.slug)), lambda _path: None)(row, header, own)[0].argv[-3:]

    asked(two_cards)
    assert written()[1:] == ("/l/a.gguf", "0.5")
    Backend.objects.update(probe={"flags": ["--port"], "joined_lora_scale": True})
    assert written()[1:] == ("--lora-scaled", "/l/a.gguf:0.5")


def test_one_device_that_is_not_found_and_none_is_named(two_cards):
    asked(two_cards, devices=LISTED[:1])
    assert host_facts(two_cards).budget_for(CoreOverride()).backend_ids == ()


def test_named_devices_are_not_hidden_as_well(two_cards):
    Device.objects.create(host=two_cards, index=2, name="Quadro P400", vendor="nvidia", total_bytes=2 * GIB)
    without = host_facts(get_host(two_cards.slug)).budget_for(CoreOverride())
    assert without.visible_ids == (0, 1)
    asked(two_cards)
    named = host_facts(get_host(two_cards.slug)).budget_for(CoreOverride())
    assert (named.visible_ids, named.backend_ids) == ((), ("CUDA0", "CUDA1"))


def test_a_pin_decides_whose_names_count(two_cards):
    asked(two_cards)
    vulkan = [{**device, "id": f"Vulkan{index}"} for index, device in enumerate(LISTED)]
    asked(two_cards, "b", devices=vulkan)
    facts = host_facts(two_cards)
    assert facts.budget_for(CoreOverride(backend="b")).backend_ids == ("Vulkan1", "Vulkan0")


def test_a_reserve_makes_no_other_card(two_cards, actor):
    asked(two_cards)
    save_device_settings(host=two_cards, values={"deviceReserveGB": {"0": 8.0}}, version=0, actor=actor)
    assert host_facts(get_host(two_cards.slug)).budget_for(CoreOverride()).backend_ids == ("CUDA0", "CUDA1")


def test_a_ratio_typed_by_hand_is_shown_beside_the_cards_that_it_means(two_cards):
    asked(two_cards, devices=[device | {"id": f"CUDA{number}"} for number, device in enumerate(LISTED[:2])])
    facts, typed = host_facts(get_host(two_cards.slug)), CoreOverride(tensor_split="0.7,0.3")
    assert facts.launch_budget(CoreOverride()).device_names == ("NVIDIA GeForce RTX 3060", "NVIDIA GeForce RTX 3090")
    own = facts.launch_budget(typed)
    assert (own.device_names, own.backend_ids) == (("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3060"), ())
    assert facts.launch_budget(typed, "image") == facts.budget_for(typed, "image"), "servers with one device"


@pytest.fixture
def equal_cards(host):
    """Three of one kind, and what a Vulkan program calls them."""
    for index in range(3):
        Device.objects.create(
            host=host, index=index, name="RX 7900 XTX", vendor="amd", total_bytes=24 * GIB, free_bytes=24 * GIB
        )
    listed = [{"id": f"Vulkan{n}", "name": "AMD RX 7900 XTX", "total_bytes": 24 * GIB, "tag": ""} for n in range(3)]
    asked(host, devices=listed)
    asked(host, "p", "sd", devices=listed)
    return host


@pytest.mark.parametrize(
    ("preference", "ids", "only"),
    [
        ({"0": "never"}, ("Vulkan2", "Vulkan1"), ""),
        ({"0": "never", "1": "never"}, ("Vulkan2",), "Vulkan2"),
        ({"2": "last", "0": "last"}, ("Vulkan0", "Vulkan2", "Vulkan1"), ""),
    ],
)
def test_equal_cards_are_told_apart_by_their_order(equal_cards, actor, preference, ids, only):
    save_device_settings(host=equal_cards, values={"devicePreference": preference}, version=0, actor=actor)
    budget = host_facts(get_host(equal_cards.slug)).budget_for(CoreOverride())
    assert (budget.backend_ids, budget.only_id) == (ids, only)


def test_the_only_card_in_use_is_the_only_one_that_is_seen(equal_cards, actor, zoo_header):
    save_device_settings(
        host=equal_cards, values={"devicePreference": {"0": "never", "1": "never"}}, version=0, actor=actor
    )
    facts, header = host_facts(get_host(equal_cards.slug)), zoo_header("qwen3-0.6b-q8_0")
    row = CoreRow(id="m", full_path="/m.gguf", model_class="llm")
    [plan, *_] = HostPlanner(facts, lambda path: None)(row, header, CoreOverride())
    budget = facts.budget_for(CoreOverride())
    assert plan_env(plan, budget) == ["GGML_VK_VISIBLE_DEVICES=2"]
    assert "--device" not in plan.argv
    assert entry_env("image", device_count=1, only_device=budget.only_id) == ["GGML_VK_VISIBLE_DEVICES=2"]
    assert entry_env("asr", device_count=1, only_device=budget.only_id) == []


def test_audio_cpp_is_told_its_first_real_card_and_no_flag_that_it_does_not_know(host):
    listed = [
        {"id": "Vulkan:0", "name": "780M", "total_bytes": 0, "tag": "IGPU"},
        {"id": "Vulkan:1", "name": "RX 7900", "total_bytes": 0, "tag": "GPU"},
    ]
    row = asked(host, "a", "audiocpp", devices=listed, flags=["--config", "--voice-dir"])
    Backend.objects.update(variant="vulkan")
    facts = host_facts(get_host(host.slug))
    planner = HostPlanner(facts, lambda path: None)
    found = CoreRow(
        id="s", full_path="/m/s.gguf", file_name="s.gguf", model_class="audiocpp", audio_family="chatterbox"
    )
    (plan,) = planner(found, Header(audio_family="chatterbox"), CoreOverride())
    assert plan.argv[0] == row.path
    assert plan.argv[plan.argv.index("--device") + 1] == "1"
    assert "--voice-dir" in plan.argv
    assert "--max-loaded-models" not in plan.argv


def test_flags_that_an_executable_does_not_know_are_an_issue(host):
    asked(host, flags=["--port", "--host", "-m"], devices=None)
    facts = host_facts(get_host(host.slug))
    notes = PlanNotes()
    planner = HostPlanner(facts, lambda path: None, notes.take)
    found = CoreRow(id="e", full_path="/m/e.gguf", file_name="e.gguf", model_class="embedding", size_bytes=GIB)
    (plan,) = planner(found, Header(architecture="bert", context_length=512), CoreOverride())
    (finding,) = command_findings(notes.refused)
    assert finding.path == "/m/e.gguf"
    assert "--embedding" in finding.text
    assert "--port" not in finding.text
    assert refused_words([plan], facts.backend_for(CoreOverride()))
    assert not refused_words([plan], BackendFacts(kind="llama", flags=frozenset(plan.argv)))


@pytest.mark.parametrize(
    ("flags", "texts"),
    [
        (["--model", "--host", "--port"], []),
        (["--model"], ["the help of its executable does not name --port: it will not start"]),
    ],
)
def test_so_they_are_on_other_servers(host, flags, texts):
    asked(host, "a", "asr", flags=flags, devices=None)
    notes = PlanNotes()
    planner = HostPlanner(host_facts(get_host(host.slug)), lambda path: None, notes.take)
    found = CoreRow(id="p", full_path="/m/parakeet.gguf", file_name="parakeet.gguf", model_class="asr")
    planner(found, Header(architecture="parakeet"), CoreOverride())
    assert [finding.text for finding in command_findings(notes.refused)] == texts
