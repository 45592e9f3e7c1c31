"""What people and hosts change: roots, scans, plans, texts, files on a host."""

from models_app.services.planning import HostFacts, Preview, host_facts, preview_plan, stored_override
from models_app.services.scanning import (
    add_root,
    forget_row,
    register_root,
    remove_root,
    start_browse,
    start_reread,
    start_scan,
)
from models_app.services.writing import start_write

__all__ = [
    "HostFacts",
    "Preview",
    "add_root",
    "forget_row",
    "host_facts",
    "preview_plan",
    "register_root",
    "remove_root",
    "start_browse",
    "start_reread",
    "start_scan",
    "start_write",
    "stored_override",
]
