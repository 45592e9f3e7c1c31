"""Forms of what people declare by hand: prompt enhancers, image models, whole entries, LoRA folders (web.md 5.8).

The keys are those of the records in the settings (state.md 6); what a declaration shares with an override is its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from models_app.core.fields.field import CHOICE, MODEL, MULTILINE, PATH, SWITCH, TEXT, Field
from models_app.core.fields.model import OVERRIDE_FIELDS

LORA_KEY = "loraDirs."
"""Before the category, in a key of the form."""
_OVERRIDE = {field.key: field for field in OVERRIDE_FIELDS}
_SHARED: Mapping[str, str] = {
    "vaePath": "vaePath",
    "llmPath": "textEncoderPath",
    "clipLPath": "clipLPath",
    "clipGPath": "clipGPath",
    "t5Path": "t5Path",
    "loraDir": "loraDir",
    **{
        key: key
        for key in (
            *("vramTargetGB", "threads", "backend", "offloadToCpu", "teOnCpu", "vaeOnCpu", "vaeTiling"),
            *("temporalTiling", "streamLayers", "diffusionFa", "defaultSteps", "defaultCfg", "defaultSampler"),
            *("defaultWidth", "defaultHeight", "promptEnhancer", "promptEnhancerEdit", "promptEnhancerPrompt"),
            *("promptEnhancerEditPrompt", "customArgs", "customArgsOff", "unlisted"),
        )
    },
}
"""Key of a declaration -> the field of an override that means the same."""
_NAMED_FILE = "The whole path on that machine; nothing is searched for."
_HELP: Mapping[str, str] = {
    **dict.fromkeys(("vaePath", "llmPath", "clipLPath", "clipGPath", "t5Path"), _NAMED_FILE),
    **dict.fromkeys(("offloadToCpu", "vaeOnCpu", "temporalTiling", "streamLayers"), "Blank: off."),
    "vramTargetGB": "Its whole budget. Blank: what the host plans with on the device that its server uses.",
    "promptEnhancer": "Blank: none.",
    "promptEnhancerEdit": "Blank: none.",
}
"""What is different about a model of which nothing is read."""


def _own(key: str, kind: str, label: str, text: str, *, choices: tuple[str, ...] = (), most: int = 0) -> Field:
    return Field(
        key=key, kind=kind, group="essentials", label=label, help=text, choices=choices, max_length=most, trimmed=True
    )


ENHANCER_FIELDS: tuple[Field, ...] = (
    _own("model", MODEL, "Model", "It rewrites the prompts."),
    _own("name", TEXT, "Name", "As clients show it.", most=128),
    _own("vision", SWITCH, "Sees the picture", "It is given the picture that is to be changed."),
    replace(
        _own(
            "systemPrompt", MULTILINE, "System prompt", "Kept byte for byte, blanks and line ends included.", most=32768
        ),
        trimmed=False,
    ),
)
DECLARED_FIELDS: tuple[Field, ...] = (
    _own("name", TEXT, "Id", "The id under which it is served.", most=128),
    _own("modelPath", PATH, "Model file", "The whole path on that machine."),
    _own(
        "modelFlag",
        CHOICE,
        "Given as",
        "A full checkpoint with -m, which holds where this is empty; a bare diffusion model with the other one.",
        choices=("-m", "--diffusion-model"),
    ),
    *(replace(_OVERRIDE[field], key=key, help=_HELP.get(key, _OVERRIDE[field].help)) for key, field in _SHARED.items()),
)
RAW_FIELDS: tuple[Field, ...] = (
    _own("servedId", TEXT, "Entry", "The id of the entry that takes the keys. Blank: the top of the file.", most=300),
    _own(
        "block",
        MULTILINE,
        "Keys",
        "In YAML. What planning writes stays as it writes it.",
        most=262144,
    ),
)
ENTRY_FIELDS: tuple[Field, ...] = (
    _own("servedId", TEXT, "Id", "The id under which it is served.", most=128),
    replace(
        _own("block", MULTILINE, "Entry", "Its keys in YAML: cmd, and estVramGB or estRamGB at the least.", most=65536),
        trimmed=False,
    ),
)
LORA_FIELDS: tuple[Field, ...] = (
    _own("loraDir", PATH, "All categories", "Empty: the folder of each model."),
    *(
        _own(f"{LORA_KEY}{name}", PATH, title, "Instead of the one above.")
        for name, title in (("llm", "Chat models"), ("image", "Image models"), ("video", "Video models"))
    ),
)
