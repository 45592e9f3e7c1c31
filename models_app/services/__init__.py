"""What people and hosts change: roots, scans, plans, texts, files on a host."""

from models_app.services.arguments import rules_of
from models_app.services.editing import (
    Pinned,
    edited,
    pinned,
    reset_override,
    restore_override,
    save_override,
    state_at,
)
from models_app.services.planning import HostFacts, Preview, host_facts, preview_plan, stored_override
from models_app.services.scanning import (
    add_root,
    forget_row,
    is_outside,
    register_root,
    remove_root,
    start_browse,
    start_reread,
    start_scan,
)
from models_app.services.variants import (
    add_variant,
    delete_variant,
    edited_variant,
    get_variant,
    rename_variant,
    restore_variant,
    save_variant,
)
from models_app.services.writing import start_write

__all__ = [
    "HostFacts",
    "Pinned",
    "Preview",
    "add_root",
    "add_variant",
    "delete_variant",
    "edited",
    "edited_variant",
    "forget_row",
    "get_variant",
    "host_facts",
    "is_outside",
    "pinned",
    "preview_plan",
    "register_root",
    "remove_root",
    "rename_variant",
    "reset_override",
    "restore_override",
    "restore_variant",
    "rules_of",
    "save_override",
    "save_variant",
    "start_browse",
    "start_reread",
    "start_scan",
    "start_write",
    "state_at",
    "stored_override",
]
