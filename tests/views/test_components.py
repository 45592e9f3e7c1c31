"""The Components page: roles, users, reasons, equal candidates, pins."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from gpus_app.models import Host, HostSetting
from gpus_app.selectors import get_host
from models_app import services
from models_app.models import Component, Override, Root, Row
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.models import Job
from tests.views.conftest import run
from tests.whole_tree import Tree

HTMX = {"HX-Request": "true", "HX-Target": "components"}
PICTURE = "decoder.conv_in.weight"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Two image models and a video model, with encoders and VAEs of which some are equal."""
    found = Tree(tmp_path / "models")
    found.gguf("dit/flux1-dev-Q4_0.gguf", "flux", {"txt_in.weight": [4096, 8], "double_blocks.0.x": [4]})
    found.gguf("dit/z-image-turbo-Q4_0.gguf", "lumina2", {"cap_embedder.1.weight": [2560, 8]})
    found.gguf("dit/Wan2.2-Q8_0.gguf", "wan", {"patch_embedding.weight": [2, 2, 1, 48, 8]})
    found.safetensors("parts/ae.safetensors", {PICTURE: [512, 16, 3, 3]})
    found.safetensors("parts/clip_l.safetensors", {"text_model.embeddings.token_embedding.weight": [8, 768]})
    found.safetensors("parts/small.safetensors", {PICTURE: [384, 32, 3, 3]})
    for name in ("a_vae", "b_vae"):
        shapes = {"conv1.weight": [2, 2, 1, 1, 1], "decoder.conv1.weight": [4, 16, 3, 3, 3]}
        found.safetensors(f"parts/{name}.safetensors", shapes)
    found.gguf("parts/umt5-xxl-encoder-Q8_0.gguf", "umt5", embedding_length=4096)
    found.chat("chat/Qwen3-4B-Q8_0.gguf", "qwen3", width=2560)
    found.chat("chat/Qwen3-4B-Q4_0.gguf", "qwen3", width=2560)
    os.truncate(found.base / "chat/Qwen3-4B-Q8_0.gguf", 1 << 20)
    found.chat("chat/idle-1B-Q8_0.gguf", "llama", width=64)
    found.chat("chat/mtp-Qwen3-4B.gguf", "qwen3")
    found.projector("chat/mmproj-Qwen3-4B-F16.gguf")
    found.chat("pe/z-image-turbo-PE-T2I-Q8_0.gguf", "qwen3vl", width=4096)
    return found


@pytest.fixture
def shown(gpu_host: Host, tree: Tree, django_capture_on_commit_callbacks: Any) -> Host:
    Root.objects.create(host=gpu_host, path=str(tree.base))
    run(django_capture_on_commit_callbacks, lambda: services.start_scan(host=gpu_host, actor=Actor()))
    assert Job.objects.filter(kind="scan").get().state == "succeeded"
    return get_host(gpu_host.slug)


def lines(client: Client, address: str = "/components/") -> dict[str, str]:
    """File -> its row as text."""
    html = client.get(address).content.decode()
    rows = re.findall(r'<tr role="row">(.*?)</tr>', html, re.DOTALL)
    texts = [" ".join(strip_tags(re.sub(r"<(?:span|td|a)", r" \g<0>", row)).split()) for row in rows]
    return {text.split()[0]: text for text in texts if not text.startswith("File")}


def test_who_uses_what_and_why(shown: Host, viewer: Client) -> None:
    found = lines(viewer)
    assert "VAE flux by tensor decoder.conv_in.weight, 512 x 16 x 3 x 3" in found["ae.safetensors"]
    assert "flux1-dev-q4_0" in found["ae.safetensors"]
    assert "z-image-turbo-q4_0" in found["ae.safetensors"]
    assert "the only file of its kind" in found["ae.safetensors"]
    assert found["umt5-xxl-encoder-Q8_0.gguf"].endswith("wan2.2-q8_0 the only file of its kind")
    assert "the largest that fits; limited to architecture qwen3" in found["Qwen3-4B-Q8_0.gguf"]
    assert "another is used Qwen3-4B-Q8_0.gguf: the largest" in found["Qwen3-4B-Q4_0.gguf"]
    assert "withheld a small decoder" in found["small.safetensors"]


def test_equal_candidates_are_shown_as_such(shown: Host, viewer: Client) -> None:
    found = lines(viewer, "/components/?state=ambiguous")
    assert found.keys() == {"a_vae.safetensors", "b_vae.safetensors"}
    assert "2 equal candidates this one is used, by path alone" in found["a_vae.safetensors"]
    assert "an equal one is used a_vae.safetensors, by path alone" in found["b_vae.safetensors"]


def test_chat_models_that_nobody_asks_for_are_left_out(shown: Host, viewer: Client) -> None:
    html = viewer.get("/components/").content.decode()
    assert "1 chat model could serve as text encoder" in html
    assert "idle-1B-Q8_0.gguf" not in html
    assert "idle-1B-Q8_0.gguf" in lines(viewer, "/components/?chat=1")


def test_every_kind_has_its_tab(shown: Host, viewer: Client) -> None:
    drafter = lines(viewer, "/components/?tab=drafters")["mtp-Qwen3-4B.gguf"]
    assert "drafter mtp by its name" in drafter
    assert "qwen3-4b-q4_0" in drafter
    assert "in a folder of several families, its name fits" in drafter
    assert "qwen3-4b-q8_0" in lines(viewer, "/components/?tab=projectors")["mmproj-Qwen3-4B-F16.gguf"]
    enhancer = lines(viewer, "/components/?tab=enhancers")["z-image-turbo-PE-T2I-Q8_0.gguf"]
    assert "z-image-turbo-q4_0" in enhancer
    assert "None found" in viewer.get("/components/?tab=parts").content.decode()


def test_filters(shown: Host, viewer: Client) -> None:
    assert lines(viewer, "/components/?q=wan2.2").keys() == {"a_vae.safetensors", "umt5-xxl-encoder-Q8_0.gguf"}
    assert lines(viewer, "/components/?role=clip").keys() == {"clip_l.safetensors"}
    assert "No component matches" in viewer.get("/components/?q=zzz").content.decode()
    assert viewer.get("/components/?tab=zzz&role=zzz&state=zzz&page=zzz&host=zzz").status_code == 200
    part = viewer.get("/components/?q=clip&role=&state=", headers=HTMX)
    assert part.content.decode().lstrip().startswith('<div id="components">')
    assert part["HX-Push-Url"] == "/components/?q=clip"


def test_nothing_to_show_says_why(gpu_host: Host, viewer: Client, tmp_path: Path) -> None:
    assert "No folders yet" in viewer.get("/components/").content.decode()
    Root.objects.create(host=gpu_host, path=str(tmp_path))
    assert "Never scanned" in viewer.get("/components/").content.decode()
    Host.objects.all().delete()
    assert "No host yet" in viewer.get("/components/").content.decode()


def test_a_pin_of_the_host_wins_and_can_be_lifted(shown: Host, as_role: Callable[[str], Client]) -> None:
    editor = as_role("editor")
    small = Component.objects.get(path__endswith="Qwen3-4B-Q4_0.gguf")
    assert editor.post(f"/components/{small.pk}/pin/", {"version": "0"}).status_code == 302
    assert HostSetting.objects.get(section="encoders").values == {"qwenLlm": small.path}
    assert AuditEntry.objects.filter(action="settings.encoders").count() == 1
    assert "pinned on the host as qwenLlm" in lines(editor)["Qwen3-4B-Q4_0.gguf"]
    assert "another is used Qwen3-4B-Q4_0.gguf: pinned on the host" in lines(editor)["Qwen3-4B-Q8_0.gguf"]
    html = editor.post(f"/components/{small.pk}/pin/", {"version": "0", "off": "1"}, follow=True).content.decode()
    assert "changed the pins meanwhile" in html
    editor.post(f"/components/{small.pk}/pin/", {"version": "1", "off": "1"})
    assert HostSetting.objects.get(section="encoders").values == {}


def test_a_kind_without_a_pin_of_the_host_says_where_to_pin(shown: Host, as_role: Callable[[str], Client]) -> None:
    vae = Component.objects.get(path__endswith="a_vae.safetensors")
    answer = as_role("editor").post(f"/components/{vae.pk}/pin/", {"version": "0"})
    assert answer.status_code == 422
    assert "model&#x27;s page" in answer.content.decode()
    assert not HostSetting.objects.filter(section="encoders").exists()


def test_a_pin_of_a_model_and_a_pin_whose_file_is_gone(shown: Host, viewer: Client, tree: Tree) -> None:
    wan = Row.objects.get(file_name="Wan2.2-Q8_0.gguf")
    Override.objects.create(host=shown, match=wan.path, fields={"vaePath": str(tree.base / "parts/b_vae.safetensors")})
    HostSetting.objects.create(host=shown, section="encoders", values={"clipL": str(tree.base / "gone.safetensors")})
    found = lines(viewer)
    assert "pinned for this model" in found["b_vae.safetensors"]
    assert "another is used b_vae.safetensors: pinned for this model" in found["a_vae.safetensors"]
    assert "the only file of its kind" in found["clip_l.safetensors"]
    assert "gone.safetensors, which is gone" in viewer.get("/components/").content.decode()


def test_few_queries_however_many_models(shown: Host, viewer: Client) -> None:
    viewer.get("/components/")
    Override.objects.create(host=shown, match="*wan*", fields={"refEdit": "on"})
    row = Row.objects.get(file_name="flux1-dev-Q4_0.gguf")
    for number in range(40):
        header = row.header
        assert header is not None
        header.pk, header.path = None, f"/x/{number}.gguf"
        header.save()
        Row.objects.create(
            host=shown,
            path=header.path,
            header=header,
            served_id=f"m{number}",
            base_id=f"m{number}",
            model_class="image",
            found={"id": f"m{number}", "full_path": header.path},
        )
    with CaptureQueriesContext(connection) as queries:
        html = viewer.get("/components/").content.decode()
    assert "and 37 more" in html or "and 38 more" in html
    assert len(queries) <= 12, "\n".join(query["sql"][:200] for query in queries.captured_queries)
