"""Whatever people may set: the exported files mean the same, and imported they change nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpus_app.models import HostSetting
from gpus_app.selectors import get_host
from models_app import convert
from models_app.core.fields import SETTINGS_FIELDS
from models_app.core.fields.field import CHOICE, INTEGER, INTEGERS, MULTILINE, NUMBER, PATH, SWITCH, TEXT
from models_app.core.imports.report import Status
from models_app.core.imports.settings_source import joined, read_files
from models_app.core.settings import override_from_mapping
from models_app.core.settings_files.files import state_of
from models_app.core.state.overrides import normalise_none
from models_app.core.state.values import field_problem
from models_app.fleet_sections import FLEET_SECTIONS, cleaned
from models_app.models import ImportBatch, Override, Row
from models_app.selectors.host_files import export_texts
from models_app.services.editing import EDITABLE
from models_app.services.import_applying import items_of_batch
from models_app.services.import_settings import read_settings
from models_app.services.variants import EDITABLE_ON_VARIANT
from quartermaster_site.errors import Refused
from tests.models.test_host_files import GENERATE, SIDECAR

WORDS = st.sampled_from(
    ["/a/b c.bin", "none", "./none", "on", "yes", "007", "12:30", "1e3", "ünï", "a: b # c", "'", '"']
)
LEFT_OUT = {"backend", "loras", "extraArgs", "customArgsOnly"}
"""What depends on other rows, or on the whole text."""


def value_of(field):
    """Values that a form takes for a field."""
    low = field.minimum if field.minimum is not None else 0
    high = min(field.maximum if field.maximum is not None else 4096, 1 << 20)
    step = field.multiple_of or 1
    whole = st.integers(int(low // step) + 1, max(int(high // step), int(low // step) + 1)).map(lambda n: n * step)
    strategies = {
        CHOICE: st.sampled_from(field.choices or ("",)),
        INTEGER: whole,
        INTEGERS: st.lists(whole, min_size=1, max_size=3, unique=True),
        NUMBER: st.floats(float(low), float(high), allow_nan=False).map(lambda n: round(n, 3)),
        SWITCH: st.booleans(),
        TEXT: WORDS,
        PATH: WORDS,
        MULTILINE: st.sampled_from(["--no-warmup", "--x 'a b'\n--y", " --z=1 "]),
    }
    return strategies.get(field.kind)


def some_of(fields):
    """A few fields with values that are set and acceptable."""
    usable = [field for field in fields.values() if value_of(field) is not None and field.key not in LEFT_OUT]
    pairs = st.sampled_from(usable).flatmap(lambda field: st.tuples(st.just(field), value_of(field)))
    kept = st.lists(pairs.filter(lambda pair: pair[0].is_set(pair[1]) and not field_problem(*pair)), max_size=5)
    return kept.map(lambda found: {field.key: value for field, value in found})


def saved(values):
    """As a form stores them: at a model's own level `none` is nothing."""
    return convert.override_fields(normalise_none(override_from_mapping(values)))


def stored(section, values):
    try:
        return cleaned(section, values)
    except Refused:
        return {}


SECTION = {
    name: some_of({field.key: field for field in SETTINGS_FIELDS if field.key in FLEET_SECTIONS[name].keys})
    for name in ("guards", "advanced")
}


class Quiet:
    """A report that nobody reads."""

    def progress(self, *arguments, **more):
        pass


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    own=some_of(EDITABLE),
    variant=some_of(EDITABLE_ON_VARIANT),
    rule=some_of(EDITABLE),
    sections=st.fixed_dictionaries(SECTION),
)
def test_an_export_imported_changes_nothing(scanned, host, own, variant, rule, sections):
    for model in (Override, HostSetting, ImportBatch):
        model.objects.all().delete()
    row = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    override = Override.objects.create(host=host, match=row.path, fields=saved(own), version=1)
    override.variants.create(name="v", fields=variant, version=1)
    Override.objects.create(host=host, match="*alpha*", quant="Q8_0", fields=saved(rule), position=1, version=1)
    for name, values in sections.items():
        HostSetting.objects.create(host=host, section=name, values=stored(name, values), version=1)
    texts = export_texts(get_host(host.slug), with_secrets=True)
    files = read_files("x.yaml", joined(texts[GENERATE], texts[SIDECAR]).encode())
    state, planned = state_of(files.file.content, files.sidecar.content), convert.core_settings(get_host(host.slug))
    assert state.overrides == convert.core_overrides(host)
    of_the_host = {name: getattr(planned, name) for name in ("models_root", "target_vram_gb", "max_ram_gb")}
    assert replace(state.settings, **of_the_host) == planned
    batch = ImportBatch.objects.create(host=get_host(host.slug), source="settings", name="x.yaml")
    batch.report = read_settings(batch, joined(texts[GENERATE], texts[SIDECAR]).encode(), Quiet())
    changing = [item for item in items_of_batch(batch) if item.status != Status.SAME]
    assert [(item.source, item.value, item.ours, item.note) for item in changing if item.value != {}] == []
