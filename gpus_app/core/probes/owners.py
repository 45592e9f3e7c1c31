"""Which processes of this machine are ours: the router with all that it has started, and this program with its own."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def local_port(url: str) -> int | None:
    """The port of an address on this machine, None for any other."""
    try:
        parts = urlsplit(url)
        return (parts.port or 80) if parts.hostname in _LOOPBACK else None
    except ValueError:
        return None


def listener(port: int) -> int | None:
    """The process that listens at a port; None where there is none, or another user's that we may not see."""
    import psutil

    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    listening = (each for each in connections if each.status == psutil.CONN_LISTEN and each.pid)
    return next((each.pid for each in listening if getattr(each.laddr, "port", None) == port), None)


def families(roots: Iterable[int]) -> frozenset[int]:
    """These processes and all that descends from them; what has ended is left out."""
    import psutil

    found: set[int] = set()
    for pid in roots:
        try:
            process = psutil.Process(pid)
            found |= {pid, *(child.pid for child in process.children(recursive=True))}
        except (psutil.Error, OSError):
            continue
    return frozenset(found)


def name_of(pid: int) -> str | None:
    """The name of a process; None for one that is not to be seen from here, as from another container."""
    import psutil

    try:
        return str(psutil.Process(pid).name())[:60] or "?"
    except psutil.AccessDenied:
        return "?"
    except (psutil.Error, OSError, ValueError):
        return None
