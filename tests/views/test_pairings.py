"""What a model goes together with, on its Files tab."""

from __future__ import annotations

import re

from django.test import Client
from django.utils.html import strip_tags

from gpus_app.models import Host
from models_app.models import Component, Override, Row
from tests.views.test_components import shown, tree  # noqa: F401


def rows(client: Client, file_name: str) -> list[str]:
    row = Row.objects.get(file_name=file_name)
    html = client.get(f"/models/{row.pk}/files/").content.decode()
    section = html.partition("<h2>Goes with</h2>")[2].partition("</section>")[0]
    lines = re.findall(r"<(?:tr|li)[^>]*>(.*?)</(?:tr|li)>", section, re.DOTALL)
    return [" ".join(strip_tags(re.sub(r"<(?:span|td|a|code)", r" \g<0>", line)).split()) for line in lines][1:]


def test_components_with_what_decided_and_what_was_not_taken(shown: Host, viewer: Client, tree) -> None:  # noqa: F811
    base = f"{tree.base}/"
    assert [line.replace(base, "") for line in rows(viewer, "z-image-turbo-Q4_0.gguf")] == [
        "VAE ae.safetensors parts/ae.safetensors the only file of its kind vaePath",
        "text encoder Qwen3-4B-Q8_0.gguf chat/Qwen3-4B-Q8_0.gguf the largest that fits; limited to architecture qwen3 "
        "not taken: Qwen3-4B-Q4_0.gguf textEncoderPath",
        "prompt enhancer z-image-turbo-pe-t2i-q8_0 pe/z-image-turbo-PE-T2I-Q8_0.gguf its name says so promptEnhancer",
    ]
    assert "by path alone among 2 equal candidates not taken: b_vae.safetensors" in rows(viewer, "Wan2.2-Q8_0.gguf")[0]


def test_what_is_missing_stands_in_its_place(shown: Host, viewer: Client) -> None:  # noqa: F811
    assert rows(viewer, "flux1-dev-Q4_0.gguf")[2] == "T5 text encoder - no T5 text encoder in the folders t5Path"
    Component.objects.filter(path__contains="Qwen3-4B").delete()
    line = rows(viewer, "z-image-turbo-Q4_0.gguf")[1]
    assert line.startswith(
        "text encoder - no text encoder (2,560 wide, or stacked to that width, of architecture qwen3)"
    )


def test_sidecars_with_their_origin_and_the_models_served(shown: Host, viewer: Client) -> None:  # noqa: F811
    lines = rows(viewer, "Qwen3-4B-Q8_0.gguf")
    assert "projector mmproj-Qwen3-4B-F16.gguf" in lines[0]
    assert "in a folder of several families, its name fits" in lines[0]
    assert lines[1].startswith("drafter mtp-Qwen3-4B.gguf")
    assert lines[2].startswith("z-image-turbo-q4_0 as text encoder")


def test_pins_of_the_model_win(shown: Host, viewer: Client, tree) -> None:  # noqa: F811
    row = Row.objects.get(file_name="z-image-turbo-Q4_0.gguf")
    fields = {"vaePath": "/elsewhere/x.safetensors", "promptEnhancer": "nobody"}
    Override.objects.create(host=shown, match=row.path, fields=fields)
    lines = rows(viewer, "z-image-turbo-Q4_0.gguf")
    assert lines[-1] == "prompt enhancer nobody pinned for this model; no such model is here promptEnhancer"
    assert any("x.safetensors /elsewhere/x.safetensors pinned for this model" in line for line in lines)


def test_a_model_by_itself_says_so(shown: Host, viewer: Client) -> None:  # noqa: F811
    row = Row.objects.get(file_name="idle-1B-Q8_0.gguf")
    assert "launched by itself" in viewer.get(f"/models/{row.pk}/files/").content.decode()


def test_the_head_names_family_and_both_quants(shown: Host, viewer: Client) -> None:  # noqa: F811
    row = Row.objects.get(file_name="Qwen3-4B-Q8_0.gguf")
    Row.objects.filter(pk=row.pk).update(quant_label="Q6_K", family_key="qwen3")
    head = viewer.get(f"/models/{row.pk}/files/").content.decode()
    assert "Q6_K by its tensors" in head
    assert "family <a" in head
    listed = viewer.get("/models/?q=qwen3-4b-q8").content.decode()
    assert "Q6_K by its tensors" in listed
    assert ">qwen3</span>" in listed


def test_a_3d_package_with_what_lies_near_it_and_what_it_lacks(host: Host, viewer: Client) -> None:
    def package(name: str, **near: str) -> Row:
        found = {"id": name, "full_path": f"/3d/{name}", "file_name": name, "model_class": "3d", **near}
        return Row.objects.create(
            host=host, path=f"/3d/{name}", served_id=name, base_id=name, file_name=name, model_class="3d", found=found
        )

    package("whole", dino_path="/3d/dinov3-vitl", birefnet_path="/3d/b/birefnet-f16.gguf")
    package("alone")
    assert rows(viewer, "whole") == [
        "image encoder (DINOv3) dinov3-vitl /3d/dinov3-vitl found near the package -",
        "background remover birefnet-f16.gguf /3d/b/birefnet-f16.gguf found near the package -",
    ]
    assert rows(viewer, "alone") == ["image encoder (DINOv3) - none lies near the package -"]
