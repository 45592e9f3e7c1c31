"""Whether and when a host's folders are looked at, in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpus_app.models import Host
from gpus_app.selectors import watch_settings_of
from models_app.models import FolderWatch
from quartermaster_site.figures import counted


@dataclass(frozen=True, slots=True)
class WatchText:
    text: str
    looked_at: datetime | None
    growing: str


def watch_text(host: Host, *, counted_too: bool = True) -> WatchText:
    """`watched every 30 s`, with the time of the last look and, `counted_too`, what is still being written."""
    seconds = watch_settings_of(host).seconds
    if not seconds:
        return WatchText("not watched: scans start by hand", None, "")
    watch = FolderWatch.objects.filter(host=host).first()
    if watch is None:
        return WatchText(f"watched every {seconds:,} s after the first scan", None, "")
    growing = f"{counted(watch.growing, 'file')} still being written" if watch.growing and counted_too else ""
    return WatchText(f"watched every {seconds:,} s", watch.looked_at, growing)
