"""Models that nobody published: the architectures of the zoos in sizes drawn from a seed.

They are the blind check of the rules for compute buffers: shapes that the rules were not found with. A name such as
`qwen3moe-7` gives the same header every time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.zoo import more_models, zoo
from tests.zoo.decoders import (
    GEMMA,
    GPT_STYLE,
    HEAD_NORMS,
    POST_NORMS,
    TIED_HEAD_NORMS,
    Experts,
    Model,
    Shape,
    Style,
    decoder,
)
from tests.zoo.mixed_models import falcon_h1, jamba, mamba1_only, rwkv7
from tests.zoo.zoo import Header

VOCABULARIES = (32000, 49152, 65536, 100352, 128256, 151936, 200064, 262144)
"""Words of a model."""


def _shape(pick: Random, *, head: int = 0, square: bool = False) -> Shape:
    """A decoder: queries are as wide as the embedding (`square`: always), narrower or wider."""
    length = head or pick.choice((64, 128, 128, 128, 256))
    embd = 256 * pick.choice((4, 6, 8, 10, 12, 14, 16, 20, 24))
    wide = 1.0 if square else pick.choice((0.75, 1, 1, 1, 1, 1.5, 2))
    heads = embd // length if square else max(2, int(embd * wide) // length // 2 * 2)
    kv = pick.choice([count for count in (1, 2, 4, 8, heads) if heads % count == 0])
    return Shape(
        pick.randint(12, 48),
        embd,
        heads,
        kv,
        length,
        256 * int(embd * pick.choice((2.25, 2.75, 3.0, 3.5, 4.0, 5.4)) // 256),
    )


def _experts(pick: Random, embd: int, *, shared: bool, lead: int = 0) -> Experts:
    """A mixture of experts: few wide ones or many narrow ones."""
    used = pick.choice((1, 2, 4, 6, 8, 8, 10))
    width = 256 * max(2, int(embd * pick.choice((0.25, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)) // 256))
    beside = width * pick.choice((1, 2)) if shared else 0
    return Experts(pick.choice((16, 32, 64, 128)), used, width, shared=beside, lead=lead)


def _dense(
    arch: str, style: Style, *, head: int = 0, square: bool = False, **keys: object
) -> Callable[[Random], Header]:
    def build(pick: Random) -> Header:
        shape = _shape(pick, head=head, square=square)
        return decoder(arch, shape, words=pick.choice(VOCABULARIES), ctx=131072, style=style, **keys)

    return build


def _moe(
    arch: str, style: Style, *, shared: bool, lead: int = 0, gate: bool = False, own_width: bool = True, **keys: object
) -> Callable[[Random], Header]:
    def build(pick: Random) -> Header:
        shape = _shape(pick)
        experts = _experts(pick, shape.embd, shared=shared, lead=lead)._replace(shared_gate=gate)
        if not own_width:
            shape = shape._replace(ff=experts.width)
        return decoder(arch, shape, words=pick.choice(VOCABULARIES), ctx=131072, style=style, experts=experts, **keys)

    return build


def _windowed(
    arch: str, style: Style, windows: tuple[int, ...], head: int = 0, **keys: object
) -> Callable[[Random], Header]:
    def build(pick: Random) -> Header:
        keys["attention__sliding_window"] = pick.choice(windows)
        shape = _shape(pick, head=head)
        return decoder(arch, shape, words=pick.choice(VOCABULARIES), ctx=131072, style=style, **keys)

    return build


def _phi3(pick: Random) -> Header:
    style = Style(fused_qkv=True, fused_up=True)
    shape = _shape(pick, head=128, square=True)
    words = pick.choice(VOCABULARIES)
    return decoder("phi3", shape, words=words, ctx=131072, style=style, rope_factors=64, rope__dimension_count=128)


def _llama4(pick: Random) -> Header:
    shape = _shape(pick, head=128)
    step = pick.choice((1, 2))
    wide = 256 * int(shape.embd * pick.choice((1, 1.6)) // 256)
    experts = Experts(16, 1, wide, shared=wide, step=step)
    words = pick.choice(VOCABULARIES)
    return decoder("llama4", shape, words=words, ctx=262144, experts=experts, interleave_moe_layer_step=step)


def _latent(pick: Random) -> Header:
    embd = 512 * pick.choice((4, 5, 8, 10, 14))
    ff_exp = 256 * pick.choice((4, 6, 8))
    return zoo.latent_attention(
        "variant",
        layers=pick.randint(16, 40),
        embd=embd,
        heads=pick.choice((16, 20, 32, 64, 96)),
        ff=256 * pick.choice((24, 40, 48)),
        ff_exp=ff_exp,
        count=64,
        used=pick.choice((4, 6, 8)),
        shared=pick.choice((1, 2)),
        lead=pick.choice((1, 2)),
        words=pick.choice(VOCABULARIES),
        ctx=131072,
        q_rank=pick.choice((0, 768, 1536)),
        kv_rank=pick.choice((256, 512)),
        rot=64,
    )


def _delta(arch: str, *, moe: bool) -> Callable[[Random], Header]:
    def build(pick: Random) -> Header:
        embd = 512 * pick.choice((3, 4, 5, 6, 8, 10))
        heads = pick.choice([count for count in (8, 16, 24, 32, 48) if count * 256 >= embd])
        values = pick.choice((16, 32, 48))
        sizes = {"count": 64, "used": pick.choice((4, 8, 10)), "ff_exp": 256 * pick.choice((2, 3, 4))}
        return zoo.qwen_hybrid(
            arch,
            "variant",
            layers=4 * pick.randint(4, 12),
            embd=embd,
            heads=heads,
            kv=pick.choice((1, 2, 4)),
            words=pick.choice(VOCABULARIES),
            k_heads=16,
            v_heads=values,
            **(sizes if moe else {"ff": 256 * int(embd * pick.choice((2.5, 3, 3.5)) // 256)}),
        )

    return build


def _granite_hybrid(pick: Random) -> Header:
    embd = 512 * pick.choice((3, 4, 6, 8))
    layers, moe = 4 * pick.randint(5, 10), pick.random() < 0.5
    sizes = {"count": 64, "used": pick.choice((6, 8, 10)), "shared": 1024} if moe else {}
    return zoo.granite_hybrid(
        "variant",
        layers=layers,
        embd=embd,
        heads=embd // 128,
        kv=4,
        attn_at=tuple(range(5, layers, pick.choice((7, 10)))),
        ff=512 if moe else 256 * int(embd * 2.75 // 256),
        inner=2 * embd,
        ssm_heads=embd // 32,
        words=pick.choice(VOCABULARIES),
        **sizes,
    )


def _nemotron(pick: Random) -> Header:
    moe = pick.random() < 0.5
    part = "MEMEM*E" if moe else pick.choice(("M-M-M-M*-", "M-M*-", "MM-M-M*-"))
    embd = 512 * pick.choice((4, 5, 6, 8))
    sizes = {"count": 64, "used": 6, "shared": 2048} if moe else {}
    return zoo.nemotron_h(
        "nemotron_h_moe" if moe else "nemotron_h",
        "variant",
        pattern=part * pick.randint(3, 6),
        embd=embd,
        heads=pick.choice((16, 32, 40)),
        kv=8,
        head=128,
        ff=1536 if moe else 256 * int(embd * 3.5 // 256),
        inner=embd * 2,
        state=128,
        groups=8,
        ssm_heads=embd // 32,
        words=131072,
        ctx=131072,
        **sizes,
    )


def _lfm2(pick: Random) -> Header:
    embd, layers = 512 * pick.choice((2, 3, 4, 5)), pick.randint(12, 30)
    return zoo.lfm2(
        "variant",
        layers=layers,
        embd=embd,
        heads=embd // 64,
        kv=8,
        ff=256 * int(embd * pick.choice((3, 4, 5)) // 256),
        attn_at=tuple(range(2, layers, 3)),
        words=pick.choice(VOCABULARIES),
    )


def _mamba2(pick: Random) -> Header:
    embd = 512 * pick.choice((2, 4, 6, 8))
    words = pick.choice(VOCABULARIES)
    return zoo.mamba2_only(
        "variant",
        layers=pick.randint(16, 48),
        embd=embd,
        inner=2 * embd,
        state=pick.choice((64, 128)),
        groups=pick.choice((1, 8)),
        heads=embd // 32,
        words=words,
    )


def _gemma4(pick: Random) -> Header:
    embd, layers, every = 256 * pick.choice((6, 8, 10, 12)), 6 * pick.randint(4, 8), 6
    shared = pick.random() < 0.6
    extra = {"shared_kv": layers // 3, "per_layer": 256} if shared else {"v_is_k": True}
    return zoo.gemma4(
        "variant",
        layers=layers,
        embd=embd,
        heads=8,
        kv_window=2,
        kv_full=2,
        every=every,
        window=pick.choice((512, 1024)),
        ff=4 * embd,
        ctx=131072,
        **extra,
    )


def _gpt_oss(pick: Random) -> Header:
    return zoo.gpt_oss("variant", layers=2 * pick.randint(6, 20), count=pick.choice((16, 32, 64)))


def _glm4moe(pick: Random) -> Header:
    embd = 512 * pick.choice((4, 6, 8, 10))
    return zoo.glm45(
        "variant",
        layers=pick.randint(16, 48),
        embd=embd,
        heads=pick.choice((32, 48, 96)),
        kv=8,
        ff=256 * int(embd * 2.7 // 256),
        ff_exp=256 * pick.choice((3, 4, 6)),
        count=64,
        used=pick.choice((4, 8)),
        lead=pick.choice((1, 3)),
        qk_norm=pick.choice(("", "head")),
    )


def _falcon_h1(pick: Random) -> Header:
    shape = _shape(pick, head=128)
    inner = 256 * pick.choice((6, 12, 16))
    return falcon_h1(shape, pick.choice(VOCABULARIES), inner, 256, 1, inner // 128)


def _jamba(pick: Random) -> Header:
    shape = _shape(pick, head=128)._replace(layers=8 * pick.randint(2, 4))
    shape = shape._replace(heads=shape.embd // 128, kv=1)
    return jamba(shape, pick.choice(VOCABULARIES), Experts(16, 2, shape.ff) if pick.random() < 0.5 else None)


def _mamba(pick: Random) -> Header:
    return mamba1_only(pick.randint(24, 64), 256 * pick.choice((3, 6, 8, 10, 16)), pick.choice(VOCABULARIES))


def _rwkv7(pick: Random) -> Header:
    embd = 256 * pick.choice((3, 4, 8, 10, 16))
    return rwkv7(pick.randint(12, 32), embd, 4 * embd, 65536, 64, 64, 32, 128)


COHERE = Style(tied=True, ln=True, ff_norm=False)
OLMO = Style(qk_norm="all", attn_norm=False, ff_norm=False, more=POST_NORMS)

FAMILIES: dict[str, tuple[str, Callable[[Random], Header]]] = {
    "llama": ("plain", _dense("llama", Style())),
    "llama-tied": ("plain", _dense("llama", Style(tied=True), head=128, rope_freqs=64)),
    "qwen2": ("plain", _dense("qwen2", Style(bias=True), square=True)),
    "qwen3": ("plain", _dense("qwen3", HEAD_NORMS)),
    "qwen3-tied": ("plain", _dense("qwen3", TIED_HEAD_NORMS)),
    "granite": ("plain", _dense("granite", Style(tied=True), logit_scale=8.0, attention__scale=0.015625)),
    "phi3": ("plain", _phi3),
    "olmo2": ("plain", _dense("olmo2", OLMO, square=True)),
    "glm4": ("plain", _dense("glm4", Style(fused_up=True, more=POST_NORMS), rope__dimension_count=64)),
    "starcoder2": ("plain", _dense("starcoder2", GPT_STYLE._replace(fused_qkv=False, tied=True))),
    "command-r": ("plain", _dense("command-r", COHERE, logit_scale=0.0625)),
    "gemma2": ("window", _windowed("gemma2", Style(tied=True, more=POST_NORMS), (4096,))),
    "gemma3": ("window", _windowed("gemma3", GEMMA, (512, 1024))),
    "cohere2": ("window", _windowed("cohere2", COHERE, (4096,), logit_scale=0.25)),
    "gpt-oss": ("window", _gpt_oss),
    "llama4": ("window", _llama4),
    "gemma4": ("shared-kv", _gemma4),
    "qwen3moe": ("moe", _moe("qwen3moe", HEAD_NORMS, shared=False)),
    "mixtral": ("moe", _moe("llama", Style(), shared=False, own_width=False)),
    "qwen2moe": ("moe", _moe("qwen2moe", Style(bias=True), shared=True, gate=True)),
    "hunyuan-moe": ("moe", _moe("hunyuan-moe", TIED_HEAD_NORMS, shared=True, own_width=False)),
    "ernie45-moe": ("moe", _moe("ernie4_5-moe", Style(tied=True), shared=True, lead=1, interleave_moe_layer_step=1)),
    "glm4moe": ("moe", _glm4moe),
    "deepseek2": ("latent", _latent),
    "qwen35": ("hybrid", _delta("qwen35", moe=False)),
    "qwen35moe": ("hybrid", _delta("qwen35moe", moe=True)),
    "qwen3next": ("hybrid", _delta("qwen3next", moe=True)),
    "granitehybrid": ("hybrid", _granite_hybrid),
    "nemotron": ("hybrid", _nemotron),
    "lfm2": ("hybrid", _lfm2),
    "falcon-h1": ("hybrid", _falcon_h1),
    "jamba": ("hybrid", _jamba),
    "mamba2": ("recurrent", _mamba2),
    "mamba": ("recurrent", _mamba),
    "rwkv7": ("recurrent", _rwkv7),
}
"""Family -> architecture class and how a model of it is drawn."""

RECIPES = ("q4_k_m", "q8_0", "q5_k_m")


def variant(family: str, seed: int) -> Model:
    """The model `family-seed`."""
    kind, build = FAMILIES[family]
    recipe = "mxfp4_moe" if family == "gpt-oss" else RECIPES[seed % len(RECIPES)]
    return Model(kind, lambda: build(Random(f"{family}-{seed}")), recipe)


def named(name: str) -> Model:
    """The model of a name such as `qwen3moe-7`."""
    family, _, seed = name.rpartition("-")
    return variant(family, int(seed))


def write(name: str, folder: str | Path) -> Path:
    """Write NAME.gguf (sparse) and return its path."""
    model = named(name)
    header = more_models.without_words(model.build())
    return Path(zoo.write(str(folder), name, header, zoo.RECIPES[model.recipe])[0])
