"""What people and hosts change: roots, scans, texts, files on a host."""

from models_app.services.scanning import add_root, register_root, remove_root, start_browse, start_scan
from models_app.services.writing import start_write

__all__ = [
    "add_root",
    "register_root",
    "remove_root",
    "start_browse",
    "start_scan",
    "start_write",
]
