"""Form fields for numbers as people type them (web.md W-040).

Accepted: surrounding blanks, a decimal point or comma where it is unambiguous, `32k` for 32 x 1,024 where counts are
asked for, `65,536` as the pages print it. Anything else is refused with the field, the range and what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

MAX_TYPED = 40
_MOST_VERSION_DIGITS = 9
_GROUPED = re.compile(r"(-?)([0-9]{1,3}(?:,[0-9]{3})+)(?:\.([0-9]+))?")
_PLAIN = re.compile(r"(-?)([0-9]+)(?:([.,])([0-9]+))?")


def posted_version(posted: Mapping[str, str]) -> int:
    """The version that a form started from; -1, which no row has, where the post does not say."""
    text = str(posted.get("version", ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_VERSION_DIGITS else -1


def read_number(text: str, *, whole: bool, thousands_suffix: bool = False) -> float | None:
    """The number in `text`, None when it is not one or could be read in two ways. k means 1,024."""
    text = text.strip()
    if len(text) > MAX_TYPED:
        return None
    factor = 1
    if thousands_suffix and text[-1:] in ("k", "K"):
        text, factor = text[:-1].rstrip(), 1024
    value = _value(text, whole=whole and factor == 1)
    if value is None:
        return None
    value *= factor
    return None if whole and value != int(value) else value


def _value(text: str, *, whole: bool) -> float | None:
    grouped = _GROUPED.fullmatch(text)
    if grouped and (whole or grouped[3]):
        return float(f"{grouped[1]}{grouped[2].replace(',', '')}.{grouped[3] or 0}")
    plain = _PLAIN.fullmatch(text)
    if plain is None or (plain[3] == "," and len(plain[4]) == 3):
        return None
    return float(f"{plain[1]}{plain[2]}.{plain[4] or 0}")


class NumberField(forms.Field):
    """A number or nothing. `clean` gives an int for whole numbers, a float otherwise, None when left empty."""

    widget = forms.TextInput

    def __init__(
        self,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        above_minimum: bool = False,
        whole: bool = False,
        tokens: bool = False,
        unit: str = "",
        empty_means: str = "automatic",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.minimum, self.maximum, self.above_minimum = minimum, maximum, above_minimum
        self.whole, self.tokens, self.unit = whole or tokens, tokens, unit
        self.empty_means = empty_means
        self.widget.attrs.setdefault("inputmode", "numeric" if self.whole else "decimal")
        self.widget.attrs.setdefault("autocomplete", "off")

    def to_python(self, value: object) -> float | int | None:
        text = str(value or "").strip()
        if not text:
            return None
        number = read_number(text, whole=self.whole, thousands_suffix=self.tokens)
        if number is None or not self._in_range(number):
            raise ValidationError(self._refusal(text), code="number")
        return int(number) if self.whole else number + 0.0

    def _in_range(self, number: float) -> bool:
        if self.minimum is not None and (number <= self.minimum if self.above_minimum else number < self.minimum):
            return False
        return self.maximum is None or number <= self.maximum

    def _refusal(self, typed: str) -> str:
        shown = typed if len(typed) <= MAX_TYPED else typed[:MAX_TYPED] + "…"
        kind = "a whole number" if self.whole else "a number"
        example = ", such as 32768 or 32k" if self.tokens else ""
        empty = "" if self.required else f", or nothing for {self.empty_means}"
        return f"{self.label} takes {kind}{self.range_text()}{example}{empty}. You typed “{shown}”."

    def range_text(self) -> str:
        """The accepted range in words, with a leading blank: ` from 1,024 to 131,072 tokens`."""
        unit = f" {self.unit}" if self.unit else ""
        low, high = _bound(self.minimum), _bound(self.maximum)
        if low and high:
            return f" above {low}, up to {high}{unit}" if self.above_minimum else f" from {low} to {high}{unit}"
        if low:
            return f" above {low}{unit}" if self.above_minimum else f" of {low} or more{unit}"
        return f" up to {high}{unit}" if high else f" in{unit}" if unit else ""


def _bound(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def whole(**options: Any) -> NumberField:
    return NumberField(whole=True, required=False, **options)


def gib(**options: Any) -> NumberField:
    """An amount of memory in GiB."""
    return NumberField(unit="GiB", required=False, **options)
