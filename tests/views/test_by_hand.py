"""What people declare by hand: forms, who may, what reaches the file."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.utils.html import strip_tags

from gpus_app.models import HostSetting
from models_app.core.export import load
from models_app.models import Fragment, Revision, Root
from models_app.services import by_hand
from quartermaster_site.access.models import Account, AuditEntry
from tests.views.conftest import run

PATH = "/hosts/local/by-hand/"
PROMPT = "  Rewrite:\n\tkeep 'quotes' and \\slashes\\\n\n"
BLOCK = "cmd: /opt/own/server --port ${PORT}\nestVramGB: 2\nproxy: http://127.0.0.1:${PORT}\n"


def text(response):
    return unescape(" ".join(strip_tags(re.sub("<", " <", response.content.decode())).split()))


@pytest.fixture
def editor(as_role):
    return as_role("editor")


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


def stored(section, key):
    return HostSetting.objects.get(section=section).values[key]


def post(client, kind, version=0, of="", **values):
    return client.post(f"{PATH}{kind}/" + (f"?of={of}" if of else ""), {"version": version, **values})


def test_a_prompt_is_kept_byte_for_byte_through_the_form(editor, host, quiet):
    assert post(editor, "enhancer", model="pe-7b", vision="on", systemPrompt=PROMPT).status_code == 302
    assert stored("enhancers", "promptEnhancers") == [{"model": "pe-7b", "vision": True, "systemPrompt": PROMPT}]
    html = editor.get(f"{PATH}enhancer/?of=pe-7b").content.decode()
    shown = unescape(re.search(r"<textarea[^>]*systemPrompt[^>]*>\n(.*?)</textarea>", html, re.DOTALL)[1])
    assert shown == PROMPT
    sent = shown.replace("\n", "\r\n")  # as browsers send it
    assert post(editor, "enhancer", 1, "pe-7b", model="pe-7b", vision="on", systemPrompt=sent).status_code == 302
    assert HostSetting.objects.get(section="enhancers").version == 1, "nothing changed, nothing is stored"


def test_a_name_that_is_taken_or_missing_is_said_beside_its_field(editor, host, quiet):
    post(editor, "enhancer", model="pe", systemPrompt="a")
    answer = post(editor, "enhancer", 1, model="PE", systemPrompt="b")
    assert answer.status_code == 422
    assert "There is one for this already" in text(answer)
    assert "It needs one" in text(post(editor, "enhancer", 1, systemPrompt="b"))
    leak = post(editor, "enhancer", 1, model="x", systemPrompt="${env.HOME}")
    assert "would be replaced by the router" in text(leak)
    assert len(stored("enhancers", "promptEnhancers")) == 1


def test_of_two_people_the_second_is_asked(editor, host, quiet):
    post(editor, "enhancer", model="one", systemPrompt="a")
    answer = post(editor, "enhancer", 0, model="two", systemPrompt="b")
    assert answer.status_code == 409
    assert 'name="version" value="1"' in answer.content.decode()
    assert "Save once more" in text(answer)


def test_removing_asks_first(editor, host, quiet):
    post(editor, "enhancer", model="one", systemPrompt="a")
    assert "Remove one ?" in text(editor.get(f"{PATH}enhancer/remove/?of=one"))
    editor.post(f"{PATH}enhancer/remove/?of=one", {"version": 1})
    assert HostSetting.objects.get(section="enhancers").values == {}
    assert editor.get(f"{PATH}enhancer/?of=one").status_code == 404


@pytest.mark.parametrize("kind", ["image", "entry"])
def test_commands_and_files_are_for_administrators(editor, viewer, host, kind):
    for client in (editor, viewer):
        assert client.get(f"{PATH}{kind}/").status_code == 403
        assert post(client, kind, name="x", modelPath="/x").status_code == 403
    assert "needs the role admin" in text(viewer.get(PATH))


def test_a_viewer_changes_nothing(viewer, host):
    assert viewer.get(PATH).status_code == 200
    assert viewer.post(PATH, {"loraDir": "/x"}).status_code == 403
    assert post(viewer, "enhancer", model="x").status_code == 403


def test_paths_of_a_declared_model_are_checked_as_far_as_the_pages_can(admin, host, quiet):
    answer = post(admin, "image", name="mine", modelPath="flux.gguf", defaultSteps="900")
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["defaultSteps"]
    answer = post(admin, "image", name="mine", modelPath="flux.gguf", vaePath="v")
    assert set(answer.context["form"].errors) == {"modelPath", "vaePath"}
    assert post(admin, "image", name="mine", modelPath="/m/flux.gguf", teOnCpu="off").status_code == 302
    assert stored("declared", "extraImageModels") == [{"name": "mine", "modelPath": "/m/flux.gguf", "teOnCpu": "off"}]


@pytest.mark.parametrize("arguments", ['--steps 9 --prompt "open', "--listen-port 9000"])
def test_arguments_that_no_file_could_hold_are_refused(admin, host, quiet, arguments):
    answer = post(admin, "image", name="mine", modelPath="/m/a.gguf", customArgs=arguments)
    assert answer.status_code == 422
    assert "Custom launch arguments:" in text(answer)
    assert not HostSetting.objects.filter(section="declared").exists()


def test_policy_folders_that_an_editor_names_lie_in_those_of_the_host(editor, host, quiet):
    """As files in the settings of a model do: a server would open what is there."""
    Root.objects.create(host=host, path="/srv/models")
    for key in ("loraDir", "loraDirs.llm"):
        for path in ("/etc", "/srv/models/../../etc", "/srv/models-too"):
            answer = editor.post(PATH, {"version": 0, key: path})
            assert (answer.status_code, "custom launch arguments" in text(answer)) == (422, True), path
    assert editor.post("/hosts/local/settings/kv/", {"version": 0, "slotCache-path": "/etc"}).status_code == 422
    assert not HostSetting.objects.filter(section__in=("advanced", "kv")).exists()
    assert editor.post(PATH, {"version": 0, "loraDir": "/srv/models/lora"}).status_code == 302


def test_folders_of_adapters_keep_the_other_settings_of_their_section(editor, host, quiet):
    HostSetting.objects.create(host=host, section="advanced", values={"threads": 3}, version=1)
    Account.objects.filter(user__username="editor").update(custom_args=True)
    values = {"version": 1, "loraDir": "/l", "loraDirs.image": "/l/image"}
    assert editor.post(PATH, values).status_code == 302
    assert HostSetting.objects.get(section="advanced").values == {
        "threads": 3,
        "loraDir": "/l",
        "loraDirs": {"image": "/l/image"},
    }
    assert by_hand.lora_values(host)["loraDirs.image"] == "/l/image"
    assert editor.post(PATH, {"version": 2, "loraDir": "here"}).status_code == 422


def test_all_of_it_reaches_the_file(admin, scanned, django_capture_on_commit_callbacks):
    def write():
        post(admin, "image", name="by-hand", modelPath="/m/flux.gguf", vramTargetGB="6", defaultSteps="4")
        post(admin, "enhancer", model="pe-7b", name="Rewriter", systemPrompt=PROMPT)
        post(admin, "entry", servedId="own", block=BLOCK)
        admin.post(PATH, {"version": 0, "loraDirs.image": "/l/image"})

    run(django_capture_on_commit_callbacks, write)
    revision = Revision.objects.order_by("-number").first()
    config = load.load(revision.text).value
    models = config["models"]
    assert revision.state == "validated", revision.findings
    assert "--steps 4" in models["by-hand"]["cmd"]
    assert "--lora-model-dir /l/image" in models["by-hand"]["cmd"]
    assert models["own"]["proxy"] == "http://127.0.0.1:${PORT}"
    assert models["own"]["metadata"] == {"quartermaster": {"estVramGB": 2}}, "in the words of this router"
    assert Fragment.objects.get().served_id == "own"
    members = [name for group in config["groups"].values() for name in group["members"]]
    assert {"own", "by-hand"} <= set(members)
    assert {"settings.enhancers", "settings.declared", "fragment.save"} <= set(
        AuditEntry.objects.values_list("action", flat=True)
    )
    page = text(admin.get(PATH))
    assert "Rewrite: keep 'quotes'" in page
    assert "no model of this host has that id" in page
    assert "/opt/own/server" in page


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ("cmd: [", "This is no YAML"),
        ("just text", "Write keys and values"),
        ("estVramGB: 2", "Cmd is missing"),
        ("cmd: srv --port ${PORT}", "estVramGB or estRamGB"),
        (f"{BLOCK}nonsense: 1", "nonsense"),
        (f"{BLOCK}ttl: soon", "ttl"),
    ],
)
def test_an_entry_is_checked_as_strictly_as_the_router_would(admin, host, block, says):
    answer = post(admin, "entry", servedId="own", block=block)
    assert answer.status_code == 422
    assert says in text(answer)
    assert not Fragment.objects.exists()


def test_secrets_of_a_command_are_masked_in_the_list(admin, viewer, host, quiet):
    post(admin, "entry", servedId="own", block=BLOCK.replace("--port", "--api-key sk-1234567890abcdef --port"))
    assert "1234567890" not in viewer.get(PATH).content.decode()


def test_raw_keys_are_written_changed_and_removed(admin, scanned, django_capture_on_commit_callbacks):
    keys = "logLevel: debug\nhooks: {on_startup: {preload: [a]}}\n"
    run(django_capture_on_commit_callbacks, lambda: post(admin, "raw", block=keys))
    config = load.load(Revision.objects.order_by("-number").first().text).value
    assert (config["logLevel"], config["hooks"]) == ("debug", {"on_startup": {"preload": ["a"]}})
    assert "(top)" in text(admin.get(PATH))
    assert "logLevel, hooks" in text(admin.get(PATH))
    page = unescape(admin.get(f"{PATH}raw/?of=(top)").content.decode())
    assert "logLevel: debug" in page
    assert post(admin, "raw", 1, "(top)", block="logLevel: info").status_code == 302
    assert Fragment.objects.get().fields == {"logLevel": "info"}
    assert admin.post(f"{PATH}raw/remove/?of=(top)", {"version": 2}).status_code == 302
    assert not Fragment.objects.exists()


@pytest.mark.parametrize(
    ("served_id", "block", "message"),
    [
        ("", "a: [", "no YAML"),
        ("", "- a", "Write keys and values"),
        ("a", "metadata: {far: .inf}", "no finite number"),
        ("", "apiKeys: [x]", "API keys"),
        ("a", "cmd: x", "entry by hand"),
        ("", "models: {}", "Models are fragments of their own"),
    ],
)
def test_raw_keys_that_cannot_be_are_refused(admin, host, quiet, served_id, block, message):
    answer = post(admin, "raw", servedId=served_id, block=block)
    assert answer.status_code == 422
    assert message in text(answer)
    assert not Fragment.objects.exists()


def test_raw_keys_of_a_model_that_is_not_there_do_not_block_the_file(
    admin, scanned, django_capture_on_commit_callbacks
):
    run(django_capture_on_commit_callbacks, lambda: post(admin, "raw", servedId="gone", block="ttl: 3"))
    newest = Revision.objects.order_by("-number").first()
    assert newest.state == Revision.State.VALIDATED
    assert "no model has this id, so its raw keys are left out: gone" in newest.text
    assert "gone" not in load.load(newest.text).value["models"]


def test_raw_keys_are_for_administrators(editor, host, quiet):
    assert post(editor, "raw", block="logLevel: debug").status_code == 403
