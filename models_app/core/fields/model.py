"""Fields of a model: what an override holds, and which of it a variant holds too."""

from __future__ import annotations

from models_app.core.fields.choices import DIFFUSION, LLAMA, ON_OFF
from models_app.core.fields.field import (
    CHOICE,
    INTEGER,
    MULTILINE,
    OWN,
    RECORDS,
    SENTINEL,
    SWITCH,
    TEXT,
    Field,
)
from models_app.core.fields.llm import LLM_FIELDS
from models_app.core.fields.media import MEDIA_FIELDS
from models_app.core.fields.speech import SPEECH_FIELDS

IDENTITY = (
    Field(
        key="match",
        kind=TEXT,
        group="identity",
        label="Match",
        trimmed=False,
        help="Path of the model, or a pattern: * is any run of characters, ? one.",
        max_length=4096,
    ),
    Field(key="quant", kind=TEXT, group="identity", label="Quantisation", help="Blank: any.", max_length=64),
)

GENERAL = (
    Field(
        key="backend",
        kind=TEXT,
        group="essentials",
        label="Backend",
        help="Blank: the default of the class.",
        max_length=128,
    ),
    Field(
        key="ttlSec",
        kind=INTEGER,
        group="visibility",
        label="Idle unload",
        nullable=True,
        minimum=0,
        maximum=31536000,
        unit="s",
        help="0 never unloads. Blank: the host's.",
    ),
    Field(
        key="spawnGuard",
        kind=CHOICE,
        group="visibility",
        label="Spawn guard",
        classes=(*LLAMA, *DIFFUSION),
        backends=("llama", "sd"),
        choices=ON_OFF,
        help="Whether llama-swap starts it through the spawn guard. Blank: as the host says.",
    ),
    Field(
        key="unlisted",
        kind=SWITCH,
        group="visibility",
        label="Unlisted",
        on_variant=True,
        inherit=OWN,
        image_inherit=OWN,
        help="Served, but not listed to clients.",
    ),
    Field(key="skip", kind=SWITCH, group="visibility", label="Skip", help="Not emitted at all."),
    Field(
        key="servedId",
        kind=TEXT,
        group="visibility",
        label="Id",
        on_variant=True,
        inherit=OWN,
        image_inherit=OWN,
        max_length=300,
        help="What clients call this entry. Blank: made from the name of the file.",
    ),
)

ARGUMENTS = (
    Field(
        key="loras",
        kind=RECORDS,
        record="lora",
        group="arguments",
        label="LoRA adapters",
        classes=LLAMA,
        backends=("llama",),
        help="Added to the launch; an adapter with scale 0 is loaded but inert.",
    ),
    Field(
        key="customArgs",
        kind=MULTILINE,
        group="arguments",
        label="Custom launch arguments",
        trimmed=False,
        on_variant=True,
        inherit=SENTINEL,
        image_inherit=SENTINEL,
        sentinel=True,
        backends=("llama", "sd"),
        max_length=16384,
        help="Appended as written. A flag here replaces every generated spelling of the same knob.",
    ),
    Field(
        key="customArgsOff",
        kind=SWITCH,
        group="arguments",
        label="Do not apply",
        backends=("llama", "sd"),
        help="Keeps the text without applying it.",
    ),
    Field(
        key="customArgsOnly",
        kind=SWITCH,
        group="arguments",
        label="Only these arguments",
        on_variant=True,
        inherit=OWN,
        image_inherit=OWN,
        backends=("llama", "sd"),
        help="The text is the whole command: only program, model and port are added, where it does not name them.",
    ),
    Field(
        key="extraArgs",
        kind=MULTILINE,
        group="arguments",
        label="Extra arguments (legacy)",
        on_variant=True,
        inherit=SENTINEL,
        image_inherit=SENTINEL,
        sentinel=True,
        max_length=16384,
        help="The older spelling of custom launch arguments.",
    ),
)

VARIANTS = (
    Field(
        key="variants",
        kind=RECORDS,
        record="variant",
        group="variants",
        label="Variants",
        help="Named sets of fields, each an entry of its own.",
    ),
)

VARIANT_NAME = Field(
    key="name",
    kind=TEXT,
    group="identity",
    label="Name",
    on_override=False,
    on_variant=True,
    inherit=OWN,
    image_inherit=OWN,
    max_length=40,
    help="Becomes the suffix of the id; vision tunes the vision twin.",
)

MODEL_FIELDS: tuple[Field, ...] = (
    *IDENTITY,
    VARIANT_NAME,
    *GENERAL,
    *LLM_FIELDS,
    *MEDIA_FIELDS,
    *SPEECH_FIELDS,
    *ARGUMENTS,
    *VARIANTS,
)
OVERRIDE_FIELDS: tuple[Field, ...] = tuple(field for field in MODEL_FIELDS if field.on_override)
VARIANT_FIELDS: tuple[Field, ...] = tuple(field for field in MODEL_FIELDS if field.on_variant)
SENTINEL_FIELDS: tuple[Field, ...] = tuple(field for field in MODEL_FIELDS if field.sentinel)
