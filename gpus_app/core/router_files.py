"""What files of routers are called: no other file of a host is read or written in the name of one."""

from __future__ import annotations

SUFFIXES = (".yaml", ".yml", ".ini", ".conf")


def is_router_file(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)
