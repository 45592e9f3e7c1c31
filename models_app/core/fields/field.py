"""What the catalogue says about one field.

A row is enough to draw a form control, check a value, read and write its YAML key and merge a variant over a model.
Sizes whose key ends in GB are GiB, as everywhere in the generate file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Default = bool | int | float | str | None | tuple[int, ...]
"""What an absent field reads: None where 0 and false are values, else the blank of its kind."""

TEXT = "text"
MULTILINE = "multiline"
PATH = "path"
CHOICE = "choice"
MODEL = "model"
"""The id of a served model, blank for automatic."""
INTEGER = "integer"
NUMBER = "number"
SWITCH = "switch"
INTEGERS = "integers"
RECORD = "record"
RECORDS = "records"
MAPPING = "mapping"

BLANKS: dict[str, Default] = {
    TEXT: "",
    MULTILINE: "",
    PATH: "",
    CHOICE: "",
    MODEL: "",
    INTEGER: 0,
    NUMBER: 0.0,
    SWITCH: False,
    INTEGERS: (),
    RECORD: None,
    RECORDS: (),
    MAPPING: None,
}

# How a variant's value meets the model's (state.md 5).
SET_WINS = "set-wins"
"""Non-blank, above zero or true wins, else the model's: a variant cannot switch off what the model switches on."""
GIVEN_WINS = "given-wins"
"""Anything but null wins, 0 and false included."""
SENTINEL = "sentinel"
"""Blank inherits, `none` is explicitly nothing, anything else is a value."""
KV_PAIR = "kv-pair"
"""Both sides together, by the KV pair rule over the model's resolved pair."""
OWN = "own"
"""Never inherited: the variant's own, or automatic."""
MODEL_ONLY = "model"
"""The model's value holds for every profile. Only the vision twin reads a variant's own (`mmproj`)."""

_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def attribute_of(key: str) -> str:
    """The Python attribute of a YAML key: `targetVramGB` -> `target_vram_gb`, `clipLPath` -> `clip_l_path`."""
    return _CASE_BOUNDARY.sub("_", key).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the settings, of an override or of a variant.

    `nullable` says that 0 or false is a value, so absence is None. `minimum` and `maximum` are inclusive bounds of a
    value that is set; `limit` names a bound that depends on the model or the host (`trained-length`, `layers`,
    `logical-cpus`, `devices`, `capacity`). `knob` is the row of the flag table whose presence in custom arguments
    locks the control. `classes` and `backends` are empty where every class or kind has the field.
    """

    key: str
    kind: str
    label: str
    help: str
    group: str
    default: Default = None
    nullable: bool = False
    minimum: float | None = None
    maximum: float | None = None
    above_minimum: bool = False
    """The minimum itself is refused."""
    multiple_of: int = 0
    unit: str = ""
    choices: tuple[str, ...] = ()
    limit: str = ""
    max_length: int = 0
    trimmed: bool = True
    record: str = ""
    """Which record the items of a `record` or `records` field are."""
    classes: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    on_override: bool = True
    on_variant: bool = False
    inherit: str = MODEL_ONLY
    image_inherit: str = MODEL_ONLY
    """The rule on an image or video variant; fleet variants do not reach those classes."""
    knobs: tuple[str, ...] = ()
    flag: str = ""
    """The one flag that it stands for: the field is offered where the help of the backend's build names that."""
    sentinel: bool = False
    """`none` means explicitly nothing on a variant, and is cleared at model level."""
    patch: bool = False
    """Settings only: part of the settings patch that pages edit field by field."""
    file_zero: Default = None
    """Settings only: what a zero in the generate file becomes, where that is not zero itself."""

    @property
    def attribute(self) -> str:
        return attribute_of(self.key)

    @property
    def absent(self) -> Default:
        """The value of a field nobody set."""
        if self.nullable:
            return None
        return self.default if self.default is not None else BLANKS[self.kind]

    def is_set(self, value: object) -> bool:
        """Whether `value` says something: `not None` where zero is a value, else not the blank of the kind."""
        if value is None:
            return False
        if self.nullable:
            return True
        return value not in ("", 0, False, (), [], {})
