"""Which entries a model gets (config-yaml.md 6.2), beyond the vectors."""

from __future__ import annotations

from models_app.core.settings import Override, Settings, Variant
from models_app.core.state.profile_set import ProfiledModel, profile_set


def profiles(override=None, settings=None, **model):
    model.setdefault("id", "m")
    return profile_set(ProfiledModel(**model), override or Override(), settings or Settings())


def test_what_belongs_to_a_profile_does_not_flow_down():
    override = Override(
        ctx=8192,
        vram_target_gb=10,
        cpu_offload=4,
        ctx_checkpoints=5,
        unlisted=True,
        threads=3,
        ctx_variants=(4096,),
        variants=(Variant(name="judge", ctx=2048), Variant(name="free")),
    )
    base, tier, judge, free, twin = profiles(override, projector_path="/p.gguf")
    figures = [
        (item.override.ctx, item.override.vram_target_gb, item.override.cpu_offload, item.override.ctx_checkpoints)
        for item in (base, tier, judge, free, twin)
    ]
    assert figures == [(8192, 10, 4, 5), (4096, 0, 0, 5), (2048, 0, 0, None), (0, 0, 0, None), (8192, 10, 0, None)]
    assert [item.override.unlisted for item in (base, tier, judge, free, twin)] == [True, False, False, False, False]
    assert {item.override.threads for item in (base, tier, judge, free, twin)} == {3}


def test_the_vision_variant_tunes_the_twin():
    tuned = Override(variants=(Variant(name="Vision", ctx=1024, mmproj="ram", vram_target_gb=6, unlisted=True),))
    (_, twin) = profiles(tuned, projector_path="/p.gguf")
    assert (twin.id, twin.projector, twin.override.ctx, twin.override.vram_target_gb) == ("m-vision", "ram", 1024, 6)
    assert twin.override.unlisted
    gone = profiles(Override(variants=(Variant(name="vision", mmproj="none"),)), projector_path="/p.gguf")
    assert [(item.id, item.projector) for item in gone] == [("m", "ram")]
    fleet = Settings(default_variants=(Variant(name="vision", ctx=512),))
    assert profiles(tuned, fleet, projector_path="/p.gguf")[-1].override.ctx == 1024


def test_the_twin_of_a_vision_language_model_is_capped():
    assert profiles(projector_path="/p.gguf", architecture="qwen2vl")[-1].override.ctx == 8192
    assert profiles(projector_path="/p.gguf", architecture="gemma3")[-1].override.ctx == 0


def test_placement_of_the_projector():
    assert [item.projector for item in profiles(Override(mmproj="gpu"), projector_path="/p")] == ["gpu", "gpu"]
    own = Override(variants=(Variant(name="eyes", mmproj_file="/own.gguf"),))
    assert [(item.id, item.projector) for item in profiles(own)] == [("m", ""), ("m-eyes", "ram")]


def test_enhancers():
    fleet = Settings(default_variants=(Variant(name="game"),))
    (text,) = profiles(None, fleet, id="x-pe-t2i", projector_path="/p.gguf")
    assert (text.override.ctx, text.projector) == (32768, "")
    pinned = profiles(Override(ctx=4096, mmproj="ram", ctx_variants=(8192,)), fleet, id="x-pe-i2i", projector_path="/p")
    assert [(item.id, item.override.ctx, item.projector) for item in pinned] == [
        ("x-pe-i2i", 4096, "ram"),
        ("x-pe-i2i-8k", 8192, "ram"),
    ]


def test_ids_that_clash_are_said():
    override = Override(ctx_variants=(32768, 32768, 0), variants=(Variant(name="32k"), Variant(name="???")))
    found = [(item.id, bool(item.skip_reason)) for item in profiles(override)]
    assert found == [("m", False), ("m-32k", False), ("m-32k", True), ("m-32k", True), ("m-", True)]


def test_other_engines_have_one_profile():
    assert [item.id for item in profiles(Override(ctx_variants=(1024,)), projector_path="/p", engine="vllm")] == ["m"]
