"""Plans from stored header facts: one row for a preview, all rows of a host for its text. Both ask `plan_row`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from django.db.models import prefetch_related_objects

from gpus_app.core.budget import Budget
from gpus_app.models import Dialect, Host, OsFamily
from gpus_app.selectors import host_budget
from models_app import convert
from models_app.core.catalog import Header, Plan, Row
from models_app.core.classes.tts import QWENTTS, tts_engine
from models_app.core.discovery.roots import path_key
from models_app.core.export.guarding import guard_of
from models_app.core.launch.executables import AUDIOCPP, resolve_executable
from models_app.core.launch.tokens import rules_for
from models_app.core.planning.context_curve import ContextCurve
from models_app.core.plans import plan_curve, plan_row
from models_app.core.plans.engines.request import WITH_COMPONENTS, Surroundings
from models_app.core.plans.launch_devices import budget_of_server
from models_app.core.settings import Override, Settings
from models_app.core.state.overrides import resolve_override
from models_app.models import Row as StoredRow
from models_app.models import Voice
from models_app.services.backend_facts import UNASKED, BackendFacts, Known, known_backends
from models_app.services.check_facts import Excesses, excesses_by_path
from models_app.services.surroundings import SurroundingsOf, host_surroundings, nothing_known

OnPlanned = Callable[[Row, Header | None, Sequence[Plan], BackendFacts], None]
"""A row, its header, its plans (the base first), and what is known of the executable that runs it."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """All of a host that a plan depends on, beside the row itself."""

    settings: Settings
    budget: Budget
    overrides: Sequence[Override]
    os_family: str = "linux"
    surroundings: SurroundingsOf = nothing_known
    backends: Known = field(default_factory=dict)
    excesses: Excesses = field(default_factory=dict)
    """Path -> what checks against llama.cpp have shown and plans keep free; for the rows that are planned."""
    has_wav_voices: Callable[[], bool] = lambda: False
    """Are voices kept here that a speech server makes from recordings?"""

    def same_path(self, match: str, path: str) -> bool:
        """Whether an override without wildcards names this file, by the rules of the host's system."""
        return path_key(match, self.os_family) == path_key(path, self.os_family)

    def backend_for(self, override: Override, model_class: str = "llm", engine: str = "") -> BackendFacts:
        """What is known of the executable that runs a model of a class; `engine` as `resolve_executable` takes it."""
        program = resolve_executable(self.settings, override.backend, model_class, engine)
        return self.backends.get(program.backend_id, UNASKED)

    def budget_for(self, override: Override, model_class: str = "llm") -> Budget:
        """The host's budget, with its backend's names of the devices where they are known.

        A target typed for one model where no GPU was seen is a device of that size.
        """
        budget = self.backend_for(override, model_class).budget or self.budget
        return budget.with_device_for(override.vram_target_gb)

    def launch_budget(self, override: Override, model_class: str = "llm") -> Budget:
        """Of it the devices that a launch uses, in its order: what a plan's figures of each device are about."""
        budget = self.budget_for(override, model_class)
        return budget_of_server(budget, self.settings, override, model_class, rules_for(self.os_family))


@dataclass(frozen=True, slots=True)
class Preview:
    """Plans of one row, the base first, and what they were made from."""

    plans: tuple[Plan, ...]
    header: Header | None
    budget: Budget
    override: Override
    curve: Callable[[str], ContextCurve | None]
    """Memory against the window for the plan with this id, computed when asked; None where nothing can be judged."""
    guarded: frozenset[str] = frozenset()
    """Ids of the plans that the host's router starts through the spawn guard."""

    @property
    def base(self) -> Plan:
        return self.plans[0]


@dataclass
class HostPlanner:
    """Plans rows of one host, and tells `on_planned` of each; it keeps none of them."""

    facts: HostFacts
    headers: Callable[[str], Header | None]
    on_planned: OnPlanned = lambda row, header, plans, backend: None
    _around: Surroundings | None = None

    def __call__(self, row: Row, header: Header | None, override: Override) -> tuple[Plan, ...]:
        plans = plan_row(
            row,
            header,
            settings=self.facts.settings,
            override=override,
            budget=self.facts.budget_for(override, row.model_class),
            headers=self.headers,
            excesses=self.facts.excesses.get(row.full_path, ()),
            surroundings=self._surroundings(row, header, override),
            word_rules=rules_for(self.facts.os_family),
            joined_lora_scale=self.facts.backend_for(override).joined_lora_scale,
        )
        backend = self.facts.backend_for(override, row.model_class, _speech_engine(row, header))
        self.on_planned(row, header, plans, backend)
        return plans

    def _surroundings(self, row: Row, header: Header | None, override: Override) -> Surroundings | None:
        """Asked for only where a launch names further files of the host, or depends on what its server can do."""
        if (engine := _speech_engine(row, header)) == QWENTTS:
            flags = self.facts.backend_for(override, row.model_class, engine).flags
            return Surroundings(header_of=self.headers, flags=flags, has_wav_voices=self.facts.has_wav_voices())
        if row.model_class == "3d":
            return Surroundings(flags=self.facts.backend_for(override, row.model_class).flags)
        if row.model_class not in WITH_COMPONENTS:
            return None
        if self._around is None:
            self._around = self.facts.surroundings(self.headers)
        if row.model_class != AUDIOCPP:
            return self._around
        backend = self.facts.backend_for(override, AUDIOCPP)
        return replace(self._around, audio_devices=backend.audio_devices, flags=backend.flags)

    def curve(self, row: Row, header: Header | None, override: Override, profile_id: str = "") -> ContextCurve | None:
        """Memory against the window for one plan of a row, the base where none has this id."""
        return plan_curve(
            row,
            header,
            profile_id,
            settings=self.facts.settings,
            override=override,
            budget=self.facts.budget_for(override),
            headers=self.headers,
            excesses=self.facts.excesses.get(row.full_path, ()),
            word_rules=rules_for(self.facts.os_family),
        )


def _speech_engine(row: Row, header: Header | None) -> str:
    """Which of the two speech servers a speech model was made for; "" for other models."""
    return tts_engine(header.architecture if header else "", row.file_name) if row.model_class == "tts" else ""


def host_facts(host: Host, path: str = "") -> HostFacts:
    """Settings, budget and overrides in force now: of the whole host, or only what may cover one path."""
    prefetch_related_objects([host], "backends")
    return HostFacts(
        convert.core_settings(host),
        host_budget(host),
        convert.core_overrides(host, path),
        host.os_family,
        host_surroundings(host),
        known_backends(host),
        has_wav_voices=cache(lambda: Voice.objects.filter(host=host, form=Voice.Form.WAV).exists()),
    )


def stored_override(facts: HostFacts, row: StoredRow) -> Override:
    """What is pinned for a row; an empty override where nothing is."""
    return resolve_override(facts.overrides, row.path, row.quant, facts.same_path) or Override()


def preview_plan(*, row: StoredRow, override: Override | None = None, facts: HostFacts | None = None) -> Preview:
    """The plans of a row under an override that is not stored (None: the stored one). Stores nothing."""
    facts = replace(facts or host_facts(row.host, row.path), excesses=excesses_by_path(row.host, [row]))
    own = stored_override(facts, row) if override is None else override
    found = replace(convert.core_row(row), id=row.served_id)
    companions = (row.path, found.mmproj_path, found.draft_path, found.codec_path, own.mmproj_file)
    lookup = convert.header_lookup(row.host, companions)
    header = lookup(row.path)
    planner = HostPlanner(facts, lookup)
    plans = planner(found, header, own)
    budget = facts.launch_budget(own, row.model_class)
    return Preview(
        plans, header, budget, own, partial(planner.curve, found, header, own), _guarded(row.host, plans, facts, own)
    )


def _guarded(host: Host, plans: Sequence[Plan], facts: HostFacts, own: Override) -> frozenset[str]:
    if host.publish_dialect != Dialect.LLAMA_SWAP or host.os_family == OsFamily.WINDOWS:
        return frozenset()
    return frozenset(plan.profile_id for plan in plans if guard_of(plan, facts.settings, own))
