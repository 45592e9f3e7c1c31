"""When a pinned file is known to be gone: one answer for pages and plans."""

from __future__ import annotations

import pytest

from gpus_app.models import Host
from models_app.convert import gone_on
from models_app.models import Component, Root


@pytest.mark.parametrize(
    ("path", "state", "gone"),
    [
        ("/models/vae.safetensors", Root.State.OK, False),
        ("/models/other.safetensors", Root.State.OK, True),
        ("/models/other.safetensors", Root.State.PARTIAL, False),
        ("/models-2/other.safetensors", Root.State.OK, False),
        ("/elsewhere/other.safetensors", Root.State.OK, False),
    ],
)
def test_only_a_folder_that_was_read_completely_can_say_so(path, state, gone):
    listed = [Component(path="/models/vae.safetensors")]
    roots = [Root(path="/models/", state=state), Root(path="/unplugged", state=Root.State.MISSING)]
    assert gone_on(Host(os_family="linux"), listed, roots)(path) is gone


def test_a_host_that_folds_case():
    listed = [Component(path="C:/Models/VAE.gguf")]
    is_gone = gone_on(Host(os_family="windows"), listed, [Root(path="C:/Models", state=Root.State.OK)])
    assert not is_gone("c:/models/vae.gguf")
    assert is_gone("c:/models/none.gguf")
