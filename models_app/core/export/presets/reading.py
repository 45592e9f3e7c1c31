"""What the router makes of a preset file: models by the name it lists, each with its options (2.1 to 2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from models_app.core.export.presets import options as table
from models_app.core.export.presets.grammar import DEFAULT_SECTION, GLOBAL_SECTION, VERSION_KEY, Pair, Section, parse
from models_app.core.export.presets.options import FALSE_WORDS, TRUE_WORDS, TWO_VALUES, Option
from models_app.core.export.presets.writing import served_id

_ASCII_BLANKS = " \t\n\v\f\r"
Options = Mapping[str, str]
"""Option name -> text as given, a negated spelling already turned round."""


class PresetError(ValueError):
    """The router refuses the file."""


def byte_order(text: str) -> bytes:
    """The router sorts names and keys by their bytes."""
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Presets:
    """Models in the router's order (bytes of the name)."""

    models: Mapping[str, Options]

    def aliases(self, name: str) -> tuple[str, ...]:
        """Further names of one model, sorted, as its preset gives them."""
        return names_in(self.models[name].get("alias", ""))


def names_in(text: str) -> tuple[str, ...]:
    """The names of a list; the router trims the blanks of ASCII alone."""
    return tuple(sorted({item.strip(_ASCII_BLANKS) for item in text.split(",")} - {""}, key=byte_order))


def decode(data: bytes) -> str:
    """Raises `PresetError` for what is no plain UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PresetError(f"byte {error.start} is not UTF-8") from error


def read(text: str) -> Presets:
    """Raises `PresetSyntaxError` for a line outside the grammar and `PresetError` for an unknown key."""
    everywhere: Options = {}
    models: dict[str, Options] = {}
    effective = last_of_each(parse(text))
    for name in sorted(effective, key=byte_order):
        found = options_of(effective[name].pairs)
        if name == GLOBAL_SECTION:
            everywhere = found
        elif found or name != DEFAULT_SECTION:
            models[served_id(name)] = found
    return Presets({name: {**everywhere, **models[name]} for name in sorted(models, key=byte_order)})


def last_of_each(sections: Iterable[Section]) -> dict[str, Section]:
    """A header that comes again replaces the earlier one as a whole."""
    return {section.name: section for section in sections}


def options_of(pairs: Iterable[Pair]) -> dict[str, str]:
    """Options of one section. Of several spellings the last in byte order of the key counts."""
    last = {pair.key: pair.value for pair in pairs if pair.key != VERSION_KEY}
    found: dict[str, str] = {}
    for key in sorted(last, key=byte_order):
        option = table.by_key().get(key)
        if option is None:
            raise PresetError(f"{key} is no option of llama-server")
        found[option.name] = given_value(option, key, last[key])
    return found


def given_value(option: Option, key: str, value: str) -> str:
    """A negated spelling with a true word means off; with any other word it means on."""
    if not option.negates(key):
        return value
    return "false" if value in TRUE_WORDS else "true"


def passed(given: Options) -> dict[str, str]:
    """What a model's process is started with; switches as `true` or `false`, absent when they are not passed."""
    by_name = {option.name: option for option in table.options()}
    arguments: dict[str, str] = {}
    for name, value in given.items():
        option = by_name[name]
        if not option.reaches_model:
            continue
        if not option.is_switch:
            arguments[name] = value
        elif value not in FALSE_WORDS:
            arguments[name] = "true"
        elif option.negated:
            arguments[name] = "false"
    return arguments


def refusal_at_start(presets: Presets) -> str:
    """Why the router would not start with this file, "" when it would."""
    taken: set[str] = set()
    for name, given in presets.models.items():
        names = {name, *presets.aliases(name)}
        if double := names & taken:
            return f"{min(double)} is a name of two models"
        taken |= names
        if found := two_valued() & given.keys():
            return f"{min(found)} takes two values"
    return ""


def two_valued() -> set[str]:
    """Options that no preset can hold: found only when a model's command is put together."""
    return {option.name for option in table.options() if option.handling == TWO_VALUES}
