"""Random stacks of what people pin, for property tests: rows for a pattern and for a model, variants, shared variants,
settings of the host, launch texts. Every field comes from the catalogue, through the texts that its control takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from models_app.core.fields import PATCH_FIELDS, Field
from models_app.core.fields.field import CHOICE, INTEGER, INTEGERS, NUMBER, SWITCH
from models_app.core.fields.groups import model_fields, variant_fields
from models_app.core.launch.flag_table import FlagTable
from models_app.core.settings import (
    Override,
    Settings,
    Variant,
    override_from_mapping,
    settings_from_mapping,
    variant_from_mapping,
)
from models_app.core.state.checks import Limits, bounded
from models_app.core.state.typed import control_text, read

NEVER = frozenset({"skip", "backend", "servedId", "customArgsOnly"})
"""Not drawn: without an entry, without a program, under another id or without generated flags there is nothing to
compare."""

_TEXTS: Mapping[str, st.SearchStrategy[str]] = {
    "ctxVariants": st.lists(st.sampled_from(["8k", "12288", "16384"]), max_size=2).map(", ".join),
    "reasoningFmt": st.sampled_from(["auto", "none", "deepseek", "off", "of f"]),
    "spec": st.sampled_from(["none", "ngram-mod", "draft-mtp+ngram-mod", "ngram-map-k4v+ngram-mod", "draft-dflash"]),
    "tensorSplit": st.sampled_from(["3,1", "1,0", "0.5,0.25", "none"]),
    "overrideTensor": st.sampled_from([r"blk\.(1|2)\.ffn_.*=CPU", "exps=CPU,out put=CUDA0", "none"]),
    "loras": st.sampled_from(["a.gguf", "sub/b c.gguf : 0.5", "/l/d.gguf : 0\ne.gguf : -1", r"C:\l\f.gguf"]),
    "defaultSampler": st.sampled_from(["euler_a", "dpm++2m"]),
}
_PATHS = st.sampled_from(
    ["/srv/plain.bin", "/srv/two words.bin", "/srv/it's.bin", r"C:\models\a b\c.bin", "/srv/#1.bin", "none", "-odd.bin"]
)
_LINES = st.text(st.sampled_from("ab é#;'\"\\-=,${}"), min_size=1, max_size=8)


def field_text(field: Field) -> st.SearchStrategy[str]:
    """Texts that the control of a field takes; those that its form refuses are rare."""
    if field.key in _TEXTS:
        return _TEXTS[field.key]
    if field.kind == SWITCH:
        return st.sampled_from(["on", "off"])
    if field.choices or field.kind == CHOICE:
        return st.sampled_from(field.choices)
    if field.kind in (INTEGER, NUMBER):
        return _number(field)
    return _PATHS if field.key.endswith(("Path", "File", "Dir")) else _LINES


def _number(field: Field) -> st.SearchStrategy[str]:
    low = 0 if field.minimum is None else field.minimum
    high = low + 1_000_000 if field.maximum is None else field.maximum
    middle = min(max(low, 1), high)
    steps = [low, middle, min(low + 37, high), high]
    if field.kind == NUMBER:
        steps += [low + (high - low) / 3, min(low + 0.05, high)]
    return st.sampled_from(sorted({control_text(field, step) or "0" for step in steps}))


_VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="\"'\\#;"), min_size=1).filter(
    lambda text: "${" not in text
)
_PINNED: Mapping[str, Sequence[str]] = {
    "ctx": ["4096", "8192", "40960"],
    "ub": ["64", "512"],
    "batch": ["512", "2048"],
    "parallel": ["1", "3"],
    "ngl": ["0", "8", "99", "all", "auto", "-1"],
    "nCpuMoe": ["0", "4"],
    "kvK": ["f16", "q8_0"],
    "kvV": ["f16", "q8_0"],
    "flashAttn": ["on", "off", "auto"],
    "spec": ["none", "ngram-mod", "draft-mtp,ngram-mod"],
    "ctxCheckpoints": ["0", "4"],
    "checkpointMinStep": ["256"],
    "ropeScaling": ["none", "yarn"],
    "tensorSplit": ["1,1", "1,0"],
    "threads": ["3"],
}
"""Values that llama-server takes for the flags that the plan is read from."""


@st.composite
def launch_texts(draw: st.DrawFn, table: FlagTable, *, most: int = 6) -> str:
    """Launch texts of known flags, in any spelling, on lines with blanks, comments and line joins between them."""
    ours = [row for row in table.rows if row.knob not in ("port", "model", "diffusionModel")]
    words: list[str] = []
    for row in draw(st.lists(st.sampled_from(ours), max_size=most)):
        first = _PINNED.get(row.knob) if row.values == 1 else None
        values = [draw(st.sampled_from(first))] if first else [draw(_VALUE) for _ in range(row.values)]
        words.append(draw(st.sampled_from(["", "  ", "# why\n", "\n"])))
        words.append(" ".join([draw(st.sampled_from(row.spellings)), *(_quoted(value) for value in values)]))
        words.append(draw(st.sampled_from(["\n", " ", " \\\n", "\r\n"])))
    return "".join(words)


def _quoted(value: str) -> str:
    return value if value.isalnum() else f'"{value}"'


def form_values(
    fields: Sequence[Field], limits: Limits, *, least: int = 0, most: int = 8
) -> st.SearchStrategy[dict[str, Any]]:
    """Values by key of some of these fields, as a form reads them from its controls."""
    usable = {field.key: bounded(field, limits) for field in fields if field.key not in NEVER}
    chosen = st.lists(st.sampled_from([*usable]), min_size=least, max_size=most, unique=True)
    texts = chosen.flatmap(lambda keys: st.fixed_dictionaries({key: field_text(usable[key]) for key in keys}))
    return texts.map(lambda typed: _given(fields, typed, limits))


def _given(fields: Sequence[Field], typed: Mapping[str, str], limits: Limits) -> dict[str, Any]:
    values = read([field for field in fields if field.key in typed], typed, limits).values
    return {field.key: values[field.key] for field in fields if field.key in values and field.is_set(values[field.key])}


@dataclass(frozen=True)
class Stack:
    """What is pinned on a host: its settings, and the rows that may cover a model, in the order of their positions."""

    settings: Settings
    rows: tuple[Override, ...]


_NOT_DRAWN = frozenset({"autoVram", "loraDirs", "multiGpu", "minGpuVramGB", "sharedMemory", "poolIntegratedGpu"})
"""Settings that a budget is made from, or that have no single control."""


def host_settings() -> st.SearchStrategy[dict[str, Any]]:
    """Settings of a host by key."""
    fields = [field for field in PATCH_FIELDS if field.key not in _NOT_DRAWN and field.kind != INTEGERS]
    ladder = st.sampled_from([{}, {"denseCtxLadder": [16384, 8192]}])
    slots = st.sampled_from([{}, {"slotCache": {"enable": True, "path": "/var/slot kv"}}])
    return st.builds(
        lambda *parts: {k: v for part in parts for k, v in part.items()},
        *[form_values(fields, Limits(), most=4), ladder, slots],
    )


@dataclass(frozen=True)
class Kind:
    """The model that a stack is drawn for."""

    model_class: str
    engine: str
    table: FlagTable
    path: str
    quant: str = ""
    limits: Limits = Limits()

    def variants(self, *names: str, most: int) -> st.SearchStrategy[list[Variant]]:
        fields = variant_fields(self.model_class, self.engine)
        text = st.one_of(st.just(""), st.just("none"), launch_texts(self.table))
        one = st.builds(
            lambda name, values, custom: variant_from_mapping({**values, "name": name, "customArgs": custom}),
            st.sampled_from(names),
            form_values(fields, self.limits, most=4),
            text,
        )
        return st.lists(one, max_size=most, unique_by=lambda variant: variant.name.lower())

    def rows(self) -> st.SearchStrategy[list[Override]]:
        fields = model_fields(self.model_class, self.engine)
        matches = [("*", ""), ("*m*", self.quant), ("*", "IQ1_S"), ("*other*", ""), (self.path, "")]
        one = st.builds(
            lambda match, values, custom, off, variants: replace(
                override_from_mapping({**values, "match": match[0], "quant": match[1]}),
                custom_args=custom,
                custom_args_off=off,
                variants=tuple(variants),
            ),
            st.sampled_from(matches),
            form_values(fields, self.limits),
            st.one_of(st.just(""), launch_texts(self.table)),
            st.sampled_from([False, False, True]),
            self.variants("fast", "Long one", "vision", most=2),
        )
        return st.lists(one, max_size=3, unique_by=lambda row: (row.match, row.quant))

    def stacks(self, **fixed: Any) -> st.SearchStrategy[Stack]:
        """Stacks for this model. `fixed` are attributes of the settings that always hold."""
        return st.builds(
            lambda values, shared, rows: Stack(
                replace(settings_from_mapping(values), default_variants=tuple(shared), **fixed), tuple(rows)
            ),
            host_settings(),
            self.variants("fast", "shared", most=1),
            self.rows(),
        )
