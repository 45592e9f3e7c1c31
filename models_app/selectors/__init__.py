"""What pages ask about models, hosts and texts."""

from models_app.selectors.details import ModelDetail, Part, get_row, issues, model_detail
from models_app.selectors.editing import (
    MOST_CHANGES,
    Editing,
    authors,
    changes,
    editing_of,
    get_change,
    variant_versions,
)
from models_app.selectors.fleet import (
    HostCard,
    attention,
    get_revision,
    latest_candidate,
    latest_written,
    newest_revisions,
    overview,
    refused_write,
    revisions,
    roots,
    troubled_plans,
)
from models_app.selectors.listing import STATES, ModelFilter, ModelGroup, ModelPage, group_of, model_list

__all__ = [
    "MOST_CHANGES",
    "STATES",
    "Editing",
    "HostCard",
    "ModelDetail",
    "ModelFilter",
    "ModelGroup",
    "ModelPage",
    "Part",
    "attention",
    "authors",
    "changes",
    "editing_of",
    "get_change",
    "get_revision",
    "get_row",
    "group_of",
    "issues",
    "latest_candidate",
    "latest_written",
    "model_detail",
    "model_list",
    "newest_revisions",
    "overview",
    "refused_write",
    "revisions",
    "roots",
    "troubled_plans",
    "variant_versions",
]
