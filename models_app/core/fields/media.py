"""Fields of image, video, audio and vllm models (web.md 6)."""

from __future__ import annotations

from models_app.core.fields.choices import DIFFUSION, ON_OFF
from models_app.core.fields.field import (
    CHOICE,
    INTEGER,
    MODEL,
    MULTILINE,
    NUMBER,
    PATH,
    SENTINEL,
    SET_WINS,
    TEXT,
    Field,
)

DIFFUSION_BACKENDS = ("sd",)


def _component(key: str, label: str) -> Field:
    return Field(
        key=key,
        kind=PATH,
        group="components",
        label=label,
        classes=DIFFUSION,
        backends=DIFFUSION_BACKENDS,
        on_variant=True,
        inherit=SENTINEL,
        image_inherit=SENTINEL,
        sentinel=True,
        knobs=(key,),
        help="Used instead of the file found on disk.",
    )


def _switch(
    key: str, label: str, text: str, classes: tuple[str, ...] = DIFFUSION, knobs: tuple[str, ...] | None = None
) -> Field:
    return Field(
        key=key,
        kind=CHOICE,
        group="generation",
        label=label,
        classes=classes,
        backends=DIFFUSION_BACKENDS,
        choices=ON_OFF,
        on_variant=True,
        inherit=SET_WINS,
        image_inherit=SET_WINS,
        knobs=(key,) if knobs is None else knobs,
        help=text,
    )


def _default(key: str, kind: str, label: str, text: str, **more: object) -> Field:
    more.setdefault("classes", DIFFUSION)
    return Field(
        key=key,
        kind=kind,
        group="defaults",
        label=label,
        backends=DIFFUSION_BACKENDS,
        on_variant=True,
        inherit=SET_WINS,
        image_inherit=SET_WINS,
        knobs=(key,),
        help=text,
        **more,  # type: ignore[arg-type]
    )


def _enhancer(key: str, kind: str, label: str, text: str, **more: object) -> Field:
    return Field(key=key, kind=kind, group="enhancer", label=label, classes=DIFFUSION, help=text, **more)  # type: ignore[arg-type]


COMPONENTS = (
    _component("vaePath", "VAE"),
    _component("clipLPath", "CLIP-L encoder"),
    _component("clipGPath", "CLIP-G encoder"),
    _component("t5Path", "T5 encoder"),
    _component("textEncoderPath", "LLM text encoder"),
    _component("audioVaePath", "Audio VAE"),
    _component("llmVisionPath", "Vision tower of the text encoder"),
    Field(
        key="loraDir",
        kind=PATH,
        group="components",
        label="LoRA folder",
        classes=DIFFUSION,
        backends=DIFFUSION_BACKENDS,
        on_variant=True,
        inherit=SENTINEL,
        image_inherit=SENTINEL,
        sentinel=True,
        knobs=("loraDir",),
        help="Blank: the host's folder, else the model's own.",
    ),
)

GENERATION = (
    _switch("refEdit", "Edits reference images", "Blank: by name.", classes=("image",), knobs=()),
    _switch(
        "llmVision", "Vision input of the encoder", "Blank: by name.", classes=("image",), knobs=("llmVisionPath",)
    ),
    _switch("offloadToCpu", "Offload to RAM", "Blank: when the weights do not fit."),
    _switch("teOnCpu", "Text encoder on the CPU", "Blank: on."),
    _switch("vaeOnCpu", "VAE on the CPU", "Blank: off."),
    _switch("vaeTiling", "VAE tiling", "Blank: on."),
    _switch("diffusionFa", "Flash attention", "Blank: on."),
    _switch("temporalTiling", "Temporal tiling", "Blank: by family."),
    _switch("streamLayers", "Stream layers", "Blank: for offloaded video models."),
)

DEFAULTS = (
    _default("defaultSteps", INTEGER, "Steps", "Blank: the family's.", minimum=1, maximum=200),
    _default("defaultCfg", NUMBER, "CFG scale", "Blank: the family's.", minimum=0, maximum=30),
    _default("defaultSampler", TEXT, "Sampler", "Blank: the family's.", max_length=64),
    _default(
        "defaultWidth", INTEGER, "Width", "Blank: the family's.", minimum=64, maximum=4096, multiple_of=8, unit="px"
    ),
    _default(
        "defaultHeight", INTEGER, "Height", "Blank: the family's.", minimum=64, maximum=4096, multiple_of=8, unit="px"
    ),
    _default(
        "defaultFrames", INTEGER, "Frames", "Moved to the family's grid.", minimum=1, maximum=10000, classes=("video",)
    ),
    _default(
        "defaultFps", INTEGER, "Frames per second", "Blank: the family's.", minimum=1, maximum=120, classes=("video",)
    ),
)

ENHANCERS = (
    _enhancer("promptEnhancer", MODEL, "Prompt enhancer", "Blank: the one found; none refuses it."),
    _enhancer("promptEnhancerEdit", MODEL, "Prompt enhancer for edits", "Blank: as for text."),
    _enhancer(
        "promptEnhancerPrompt", MULTILINE, "Enhancer prompt", "Kept byte for byte.", max_length=32768, trimmed=False
    ),
    _enhancer(
        "promptEnhancerEditPrompt",
        MULTILINE,
        "Enhancer prompt for edits",
        "Kept byte for byte.",
        max_length=32768,
        trimmed=False,
    ),
)

VLLM = (
    Field(
        key="vllmGpuUtil",
        kind=NUMBER,
        group="vllm",
        label="GPU share",
        classes=("hf", "llm"),
        backends=("vllm",),
        minimum=0.05,
        maximum=0.99,
        help="Blank: from the estimate.",
    ),
    Field(
        key="vllmTensorParallel",
        kind=INTEGER,
        group="vllm",
        label="Tensor parallel",
        classes=("hf", "llm"),
        backends=("vllm",),
        minimum=1,
        maximum=64,
        limit="devices",
        help="Cards that share each layer.",
    ),
    Field(
        key="vllmTokenizer",
        kind=TEXT,
        group="vllm",
        label="Tokenizer",
        classes=("hf", "llm"),
        backends=("vllm",),
        max_length=1024,
        help="A repository or folder, for GGUF files.",
    ),
    Field(
        key="vllmToolParser",
        kind=TEXT,
        group="vllm",
        label="Tool parser",
        classes=("hf", "llm"),
        backends=("vllm",),
        max_length=64,
        help="Blank: by architecture; none is off.",
    ),
)

AUDIO = (
    Field(
        key="audioDevice",
        kind=INTEGER,
        group="audio",
        label="Device",
        classes=("audiocpp",),
        backends=("audiocpp",),
        nullable=True,
        minimum=-1,
        maximum=64,
        knobs=(),
        help="0 is the first adapter, negative emits nothing. Blank: by probe.",
    ),
    Field(
        key="audioWeightType",
        kind=CHOICE,
        group="audio",
        label="Weight type",
        classes=("audiocpp",),
        backends=("audiocpp",),
        choices=("native", "f16"),
        help="Blank: the family's.",
    ),
)

MEDIA_FIELDS = (*COMPONENTS, *GENERATION, *DEFAULTS, *ENHANCERS, *VLLM, *AUDIO)
