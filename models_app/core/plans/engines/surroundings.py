"""The surroundings of models from the component files of their host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from models_app.core.catalog import Header
from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.discovery.audio_packages import find_aligner
from models_app.core.launch.paths import folder_of, forward
from models_app.core.plans.engines.request import Surroundings

VAD_FOLDER = "assets/framework/models/silero_vad"
"""Of an audio.cpp build, beside its program or in one of the folders above."""
FOLDERS_ABOVE = 3


def surroundings_of(
    entries: Iterable[PoolEntry],
    platform: str,
    *,
    header_of: Callable[[str], Header | None] = lambda path: None,
    is_gone: Callable[[str], bool] = lambda path: False,
    vad_path: str = "",
) -> Surroundings:
    """What a class planner may know of a host, from all of its component files."""
    files = list(entries)
    sizes = {forward(entry.path): entry.size_bytes for entry in files}
    return Surroundings(
        pool=Pool((entry for entry in files if entry.is_offered), platform),
        is_gone=is_gone,
        file_bytes=lambda path: sizes.get(forward(path), 0),
        header_of=header_of,
        aligner_path=find_aligner((entry.path, entry.family) for entry in files),
        vad_path=vad_path,
    )


def vad_candidates(executable: str) -> list[str]:
    """Where the voice detector of an audio.cpp build may lie, nearest first; nothing for a bare name."""
    folder, found = folder_of(executable), []
    for _ in range(FOLDERS_ABOVE + 1):
        if not folder:
            break
        found.append(os.path.join(folder, VAD_FOLDER))
        folder = folder_of(folder)
    return found
