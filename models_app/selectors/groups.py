"""Which models of a host fall into which group, as planned now."""

from __future__ import annotations

from collections.abc import Sequence

from gpus_app.models import Host
from models_app.core.classes.tts import tts_engine
from models_app.core.export.groups import assign_groups, coexist_set
from models_app.core.settings import GroupSpec, Override
from models_app.core.state.overrides import resolve_override
from models_app.models import StoredPlan
from models_app.selectors.entry_sight import EntrySight
from models_app.services.planning import host_facts


def group_members(host: Host, specs: Sequence[GroupSpec], sight: EntrySight) -> dict[str, list[str]]:
    """Name of a group -> ids of its members that a person sees, in written order; sets that the export derives come
    last.
    """
    facts = host_facts(host)
    plans = StoredPlan.objects.filter(row__host=host, skip_reason="").order_by("row__served_id", "pk")
    columns = ("profile_id", "row__model_class", "row__architecture", "row__file_name", "row__path", "row__quant")
    ids, together = [], dict[str, list[str]]()
    for profile_id, model_class, architecture, name, path, quant in plans.values_list(*columns):
        override = resolve_override(facts.overrides, path, quant, facts.same_path) or Override()
        engine = tts_engine(architecture, name) if model_class == "tts" else ""
        ids.append(profile_id)
        if kept_apart := coexist_set(model_class, engine, override):
            together.setdefault(kept_apart, []).append(profile_id)
    assigned = assign_groups(specs, ids, together)
    return {
        name: [member for member in fields["members"] if sight.sees(member)]
        for name, fields in assigned.groups.items()
        if not sight.names_hidden(name)
    }
