"""Fields of a host's settings (state.md 3, web.md 5.10). `patch` marks those that pages edit field by field."""

from __future__ import annotations

from models_app.core.fields.choices import KV_TYPES
from models_app.core.fields.field import (
    CHOICE,
    INTEGER,
    INTEGERS,
    MAPPING,
    NUMBER,
    PATH,
    RECORD,
    RECORDS,
    SWITCH,
    Field,
)

DEFAULT_CTX_LADDER = (1048576, 524288, 262144, 131072, 65536, 32768)
OLD_CTX_LADDER = (131072, 65536, 32768)
"""A ladder once shipped as the default, which files carry untouched: read as "not set" (state.md 3.1)."""


def _patch(key: str, kind: str, group: str, label: str, text: str, **more: object) -> Field:
    return Field(key=key, kind=kind, group=group, label=label, help=text, patch=True, **more)  # type: ignore[arg-type]


MEMORY = (
    _patch(
        "targetVramGB",
        NUMBER,
        "memory",
        "VRAM target",
        "VRAM that plans may use. Blank: what is free.",
        default=7.0,
        file_zero=7.0,
        minimum=0,
        above_minimum=True,
        unit="GiB",
        limit="capacity",
    ),
    _patch(
        "autoVram",
        SWITCH,
        "memory",
        "Follow free VRAM",
        "Lowers the target to what is free when planning.",
        default=False,
    ),
    _patch(
        "vramOverheadGB",
        NUMBER,
        "memory",
        "Headroom",
        "Added to every estimate.",
        default=0.5,
        file_zero=0.5,
        minimum=0,
        maximum=4096,
        unit="GiB",
    ),
    _patch(
        "maxRamGB",
        NUMBER,
        "memory",
        "RAM budget",
        "RAM that plans may use.",
        default=24.0,
        file_zero=24.0,
        minimum=0,
        above_minimum=True,
        unit="GiB",
        limit="capacity",
    ),
    _patch(
        "ttlSec",
        INTEGER,
        "memory",
        "Idle unload",
        "0 never unloads.",
        default=600,
        file_zero=600,
        minimum=0,
        maximum=31536000,
        unit="s",
    ),
)

GUARDS = (
    _patch("oomGuardEvict", SWITCH, "guards", "Shed idle models", "When other programs need the VRAM.", default=True),
    _patch(
        "oomGuardReserveGB",
        NUMBER,
        "guards",
        "VRAM held back",
        "For the growth of other programs. 0 or less holds nothing back.",
        default=1.0,
        file_zero=1.0,
        maximum=4096,
        unit="GiB",
    ),
    _patch(
        "oomGuardGraceSec",
        INTEGER,
        "guards",
        "Grace",
        "Time over the ceiling before shedding.",
        default=30,
        file_zero=30,
        minimum=1,
        maximum=86400,
        unit="s",
    ),
    _patch(
        "minGpuFraction",
        NUMBER,
        "guards",
        "Least share on the GPU",
        "A load with less is refused. 0 switches this off.",
        default=0.5,
        file_zero=0.5,
        maximum=1,
    ),
    _patch(
        "spawnGuard",
        SWITCH,
        "guards",
        "Spawn guard",
        "For llama-swap: looks at each start at what is free then, and offloads more, shortens the context or refuses.",
        default=False,
    ),
    _patch(
        "multiResident",
        SWITCH,
        "guards",
        "Several models at once",
        "Writes the budget block, so that models stay together.",
        default=True,
    ),
)

GPU = (
    _patch("multiGpu", SWITCH, "gpu", "Use several cards", "Pools the eligible cards.", default=True),
    _patch(
        "minGpuVramGB",
        NUMBER,
        "gpu",
        "Smallest card",
        "Cards with less VRAM are left out.",
        default=3.0,
        file_zero=3.0,
        minimum=0,
        maximum=4096,
        unit="GiB",
    ),
    _patch(
        "sharedMemory",
        CHOICE,
        "gpu",
        "Shared memory",
        "Whether memory shared with the host counts as VRAM.",
        default="auto",
        choices=("auto", "on", "off"),
    ),
    _patch(
        "poolIntegratedGpu",
        SWITCH,
        "gpu",
        "Pool integrated GPUs",
        "An integrated GPU may share a split with a card.",
        default=False,
    ),
)

SAMPLING = (_patch("dryDefault", SWITCH, "sampling", "DRY", "Damps repetition on every model.", default=False),)

KV = (
    _patch(
        "kvQuant",
        CHOICE,
        "kv",
        "KV type",
        "Type of cached keys and values. Blank: chosen by fit.",
        default="",
        choices=KV_TYPES,
    ),
    Field(
        key="slotCache",
        kind=RECORD,
        record="slot_cache",
        group="kv",
        label="Slot cache",
        help="Conversations on disk; reference router only.",
    ),
)

ADVANCED = (
    _patch(
        "computeBufFactor",
        NUMBER,
        "advanced",
        "Compute buffer factor",
        "Scales the classic compute-buffer model.",
        default=1.0,
        file_zero=1.0,
        minimum=0,
        above_minimum=True,
        maximum=100,
    ),
    _patch(
        "visionOverheadGB",
        NUMBER,
        "advanced",
        "Vision overhead",
        "For projectors without dimensions.",
        default=1.0,
        file_zero=1.0,
        minimum=0,
        above_minimum=True,
        maximum=4096,
        unit="GiB",
    ),
    _patch(
        "visionCtx",
        INTEGER,
        "advanced",
        "Vision context",
        "Window of the twin of a vision-language model.",
        default=8192,
        file_zero=8192,
        minimum=1,
        maximum=16777216,
        unit="tokens",
    ),
    _patch(
        "moeCtxTarget",
        INTEGER,
        "advanced",
        "MoE context goal",
        "When experts spill to RAM.",
        default=65536,
        file_zero=65536,
        minimum=1,
        maximum=16777216,
        unit="tokens",
    ),
    _patch(
        "denseMinCtx",
        INTEGER,
        "advanced",
        "Least context",
        "Before layers are moved to the CPU.",
        default=32768,
        file_zero=32768,
        minimum=1,
        maximum=16777216,
        unit="tokens",
    ),
    _patch(
        "denseCtxLadder",
        INTEGERS,
        "advanced",
        "Context ladder",
        "Windows that are tried, largest first.",
        default=DEFAULT_CTX_LADDER,
        minimum=1,
        maximum=16777216,
        unit="tokens",
    ),
    _patch(
        "threads",
        INTEGER,
        "advanced",
        "Threads",
        "CPU threads of each server.",
        default=7,
        file_zero=7,
        minimum=1,
        maximum=1024,
        limit="logical-cpus",
    ),
    _patch(
        "healthCheckTimeout",
        INTEGER,
        "advanced",
        "Health check time-out",
        "Time a model may take to start.",
        default=300,
        file_zero=300,
        minimum=1,
        maximum=86400,
        unit="s",
    ),
    _patch("loraDir", PATH, "advanced", "LoRA folder", "Blank: the folder of each model.", default=""),
    _patch("loraDirs", MAPPING, "advanced", "LoRA folders", "By category: llm, image, video."),
)

FOLDERS = (
    Field(key="modelsRoot", kind=PATH, group="folders", label="Main folder", help="Where models are looked for."),
    Field(
        key="categoryRoots",
        kind=MAPPING,
        group="folders",
        label="Category folders",
        help="Further folders, by category.",
    ),
)

EXECUTABLES = (
    Field(
        key="serverExe",
        kind=PATH,
        group="backends",
        label="llama-server",
        default="llama-server",
        help="Path of llama-server.",
    ),
    Field(
        key="sdServerExe",
        kind=PATH,
        group="backends",
        label="sd-server",
        default="sd-server",
        help="Path of sd-server.",
    ),
    Field(
        key="ttsServerExe",
        kind=PATH,
        group="backends",
        label="tts-server",
        default="tts-server",
        help="Path of tts-server.",
    ),
    Field(
        key="asrServerExe",
        kind=PATH,
        group="backends",
        label="parakeet-server",
        default="parakeet-server",
        help="Path of parakeet-server.",
    ),
    Field(
        key="backends",
        kind=RECORDS,
        record="backend",
        group="backends",
        label="Backends",
        help="The registry of executables.",
    ),
)

LISTS = (
    Field(key="groups", kind=RECORDS, record="group", group="groups", label="Groups", help="First match wins."),
    Field(
        key="defaultVariants",
        kind=RECORDS,
        record="variant",
        group="variants",
        label="Fleet variants",
        help="Emitted for every text model.",
    ),
    Field(key="displayNames", kind=MAPPING, group="names", label="Display names", help="Advertised name by model id."),
    Field(
        key="apiKeys",
        kind=RECORDS,
        record="api_key",
        group="keys",
        label="API keys",
        help="Keys of the router's clients.",
    ),
    Field(
        key="encoders",
        kind=RECORD,
        record="encoders",
        group="components",
        label="Pinned components",
        help="Encoders and VAEs used before any found on disk.",
    ),
    Field(
        key="promptEnhancers",
        kind=RECORDS,
        record="prompt_enhancer",
        group="components",
        label="Prompt enhancers",
        help="Models that rewrite prompts.",
    ),
    Field(
        key="extraImageModels",
        kind=RECORDS,
        record="extra_image_model",
        group="components",
        label="Manual image models",
        help="Image models declared by hand.",
    ),
    Field(
        key="extraModels", kind=MAPPING, group="components", label="Extra models", help="Config blocks written by hand."
    ),
    Field(key="app", kind=RECORD, record="app", group="app", label="Process settings", help="Not read when planning."),
)

SETTINGS_FIELDS: tuple[Field, ...] = (
    *MEMORY,
    *GUARDS,
    *GPU,
    *SAMPLING,
    *KV,
    *ADVANCED,
    *FOLDERS,
    *EXECUTABLES,
    *LISTS,
)
PATCH_FIELDS: tuple[Field, ...] = tuple(field for field in SETTINGS_FIELDS if field.patch)
