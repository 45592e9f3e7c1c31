"""Numbers as people type them: read, or refused with the field, the range and what was typed."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from quartermaster_site.number_fields import NumberField

CONTEXT = {"minimum": 4096, "maximum": 131072, "tokens": True, "unit": "tokens"}


def _field(**options: object) -> NumberField:
    return NumberField(label="Context", required=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("32768", 32768),
        (" 32k ", 32768),
        ("32K", 32768),
        ("65,536", 65536),
        ("4.5k", 4608),
        ("", None),
        ("   ", None),
    ],
)
def test_token_counts(typed: str, value: int | None) -> None:
    assert _field(**CONTEXT).clean(typed) == value


@pytest.mark.parametrize("typed", ["1,5", "1.5"])
def test_decimal_point_and_comma(typed: str) -> None:
    assert _field(unit="GiB").clean(typed) == 1.5


def test_grouped_decimals_are_read_when_there_is_one_reading() -> None:
    assert _field().clean("1,234.5") == 1234.5
    with pytest.raises(ValidationError):
        _field().clean("1,500")


@pytest.mark.parametrize(
    "typed", ["1e", "1e3", "'", "９", "0x", "--1", "1.2.3", "1,2,3", "nan", "inf", "1" * 5000, "k", "²"]
)
def test_stray_characters_are_refused_with_a_message(typed: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _field(**CONTEXT).clean(typed)
    message = caught.value.messages[0]
    assert "Context takes a whole number from 4,096 to 131,072 tokens" in message
    assert len(message) < 250


def test_bounds_are_named() -> None:
    with pytest.raises(ValidationError, match="above 0 GiB"):
        _field(minimum=0, above_minimum=True, unit="GiB").clean("0")
    with pytest.raises(ValidationError, match="of 0 or more"):
        _field(minimum=0).clean("-1")
    assert _field(minimum=0).clean("-0") == 0


@given(st.text(max_size=60))
def test_no_text_is_an_error_of_ours(typed: str) -> None:
    for field in (_field(**CONTEXT), _field(minimum=0, unit="GiB")):
        try:
            value = field.clean(typed)
        except ValidationError:
            continue
        assert value is None or value >= 0
