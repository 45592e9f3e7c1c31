"""The pages of models that are no chat models: their words, their tabs, and what stands beside the command."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.utils.html import strip_tags

from gpus_app.core.budget import budget_of
from models_app.core.catalog import Header
from models_app.core.catalog import Row as CoreRow
from models_app.core.components.pool import PoolEntry
from models_app.core.plans import plan_row
from models_app.core.plans.engines.request import window_tokens
from models_app.core.plans.engines.surroundings import surroundings_of
from models_app.core.settings import BackendEntry, Settings
from models_app.models import Row
from models_app.pages.device_list import MachineDevice
from models_app.pages.placement_text import engine_placement_word
from models_app.pages.plan_panel import Machine, plan_panel

GIB = 1 << 30
FLEET = Settings(target_vram_gb=24, vram_overhead_gb=1, max_ram_gb=64, backends=(BackendEntry("v", "vllm", path="/v"),))
MACHINE = Machine((MachineDevice("GPU 0 · card", 24 * GIB, 24 * GIB),), 64 * GIB, 48 * GIB)
HEADERS = {
    "image": Header(architecture="flux"),
    "embedding": Header(architecture="bert", context_length=512),
    "hf": Header(format="hf", architecture="llama", block_count=2, head_count=4, head_count_kv=4, context_length=4096),
    "tts": Header(architecture="qwen3-tts"),
}


def planned(model_class, name="m.gguf", size_gib=2.0, **fields):
    found = CoreRow(
        id="m",
        full_path=f"/m/{name}",
        file_name=name,
        size_bytes=int(size_gib * GIB),
        model_class=model_class,
        **fields,
    )
    parts = [
        PoolEntry("/c/ae.safetensors", "vae", "flux", size_bytes=GIB),
        PoolEntry("/c/t5.safetensors", "t5", width=4096, size_bytes=4 * GIB),
    ]
    around = surroundings_of(parts, "linux")
    header = HEADERS.get(model_class, Header())
    return plan_row(found, header, settings=FLEET, budget=budget_of([24], 64), surroundings=around)[0]


def panel(model_class, **fields):
    return plan_panel(planned(model_class, **fields), MACHINE, block_count=0)


def test_an_image_model_says_what_it_needs_and_what_is_kept_free():
    found = panel("image", size_gib=6.0)
    assert found.headline == "Fits: 23.0 of 24.0 GiB"
    assert found.details.startswith("runs on sd-server (stable-diffusion.cpp) · ")
    assert found.details.endswith("GiB at the least, the rest is kept free for it to work in")


def test_component_files_go_by_their_role():
    names = {part.label: part.colour for part in panel("image", size_gib=6.0).parts}
    assert names["VAE"] == names["T5 text encoder"] == "projector"


@pytest.mark.parametrize(
    ("model_class", "headline", "details", "reason"),
    [
        ("sam", "Runs on the CPU", "runs on sam3_server", "On a GPU this engine returns garbage"),
        ("asr", "Runs on the CPU", "runs on parakeet-server (parakeet.cpp)", "nothing is counted"),
        ("tts", "Fits: 3.2 of 24.0 GiB", "runs on tts-server (qwentts.cpp) · 20.8 GiB to spare", "no codec"),
        ("embedding", "Fits: 2.5 of 24.0 GiB", "runs on llama-server (llama.cpp) · 21.5 GiB to spare", ""),
    ],
)
def test_headline_details_and_reasons(model_class, headline, details, reason):
    found = panel(model_class)
    assert (found.headline, found.details) == (headline, details)
    assert reason.lower() in " ".join(line.text.lower() for line in found.reasons)


def test_notes_stand_with_the_reasons_as_sentences():
    from dataclasses import replace

    plan = replace(planned("embedding"), notes=("the build is not known",), warnings=("no backend is registered",))
    lines = [(line.tone, line.text) for line in plan_panel(plan, MACHINE, block_count=0).reasons]
    assert lines == [("", "The build is not known."), ("warn", "No backend is registered.")]


def test_what_lists_show_of_them():
    window = {name: window_tokens(planned(name)) for name in ("embedding", "hf", "image", "sam")}
    assert window == {"embedding": 512, "hf": 4096, "image": 0, "sam": 0}
    words = {name: engine_placement_word(planned(name)) for name in ("embedding", "sam", "asr")}
    assert words == {"embedding": "all GPU", "sam": "CPU", "asr": "CPU"}
    assert engine_placement_word(planned("image", size_gib=40.0)) == "visits the GPU"


def text(response):
    return unescape(" ".join(strip_tags(re.sub("<", " <", response.content.decode())).split()))


def test_a_page_without_a_form_shows_its_plan_on_a_phone_too(scanned, viewer, row_named):
    html = viewer.get(f"/models/{row_named('nomic').pk}/").content.decode()
    assert re.search(r'<aside class="q-plan" id="plan" aria-label', html), "a popover would stay closed"
    html = viewer.get(f"/models/{row_named('qwen3-8b').pk}/").content.decode()
    assert re.search(r'<aside class="q-plan" id="plan" popover aria-label', html)


def test_tabs_that_lead_nowhere_are_not_offered(scanned, viewer, row_named):
    page = viewer.get(f"/models/{row_named('nomic').pk}/").content.decode()
    assert "/compare/" not in page
    assert "/variants/" not in page
    chat = viewer.get(f"/models/{row_named('qwen3-8b').pk}/").content.decode()
    assert "/compare/" in chat
    assert "/variants/" in chat


def test_the_list_shows_window_and_placement_of_an_embedding_model(scanned, viewer):
    row = Row.objects.get(served_id__startswith="nomic")
    plan = row.plans.get()
    assert (plan.ctx_tokens, plan.placement_text) == (2048, "all GPU")
    assert "embedding" in text(viewer.get("/models/?q=nomic"))


def test_the_environment_of_the_entry_stands_beside_the_command(scanned, viewer, row_named):
    from gpus_app.models import Device

    Device.objects.create(
        host=scanned, index=1, name="RTX 3060", vendor="nvidia", total_bytes=12 * GIB, free_bytes=11 * GIB
    )
    page = text(viewer.get(f"/models/{row_named('nomic').pk}/"))
    assert "with CUDA_DEVICE_ORDER=PCI_BUS_ID , CUDA_VISIBLE_DEVICES=0 in its environment" in page
