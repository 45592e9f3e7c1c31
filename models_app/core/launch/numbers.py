"""Numbers as command-line text (launch.md 1.2)."""

from __future__ import annotations

import math

from models_app.core.errors import LaunchError

MAX_PLAIN_EXPONENT = 6
"""From this decimal exponent on the exponent form is used."""
MIN_PLAIN_EXPONENT = -4


def format_float(value: float) -> str:
    """The shortest text that reads back as `value`; exponent form below 1e-4 and from 1e6 on (`1e+06`, `1e-05`)."""
    if not math.isfinite(value):
        raise LaunchError(f"{value} is not a number a command line can hold")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = repr(float(abs(value))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    exponent = int(power or 0) + len(whole) - leading_zeros - 1
    digits = digits.rstrip("0")
    if MIN_PLAIN_EXPONENT <= exponent < MAX_PLAIN_EXPONENT:
        return sign + _plain(digits, exponent)
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def number_text(value: float) -> str:
    """Whole numbers in decimal, others as `format_float`."""
    return str(value) if isinstance(value, int) else format_float(value)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
