"""Which backend runs which models of a host, and what would change without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import prefetch_related_objects

from gpus_app.models import Backend, Host
from models_app import convert
from models_app.core.classes.tts import TTSCPP, tts_engine
from models_app.core.discovery.roots import path_key
from models_app.core.launch.backends import with_registry
from models_app.core.launch.executables import Executable, resolve_executable
from models_app.core.settings import Override, Settings
from models_app.core.state.overrides import merge_overrides, resolve_override
from models_app.models import Override as StoredOverride
from models_app.models import Row
from models_app.selectors.sight import seen_rows
from quartermaster_site.errors import NotFound

USES: tuple[tuple[str, str, str], ...] = (
    ("llm", "", "Chat"),
    ("embedding", "", "Embedding and decision"),
    ("hf", "", "Hugging Face folders"),
    ("image", "", "Image and video"),
    ("3d", "", "3D"),
    ("sam", "", "Segmentation"),
    ("tts", "", "Speech, qwentts"),
    ("tts", TTSCPP, "Speech, TTS.cpp"),
    ("asr", "", "Transcription, Parakeet"),
    ("audiocpp", "", "Speech and music, audio.cpp"),
)
"""What models are run by, each with one program: class, speech engine, title."""
_SAME_PROGRAM = {"video": "image", "decision": "embedding"}


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model with what decides about its program."""

    pk: int
    served_id: str
    model_class: str
    engine: str
    pinned: str
    """Id of the backend that a person chose for it, "" for the default."""

    @property
    def use(self) -> tuple[str, str]:
        return _SAME_PROGRAM.get(self.model_class, self.model_class), self.engine

    def program(self, settings: Settings) -> Executable:
        return resolve_executable(settings, self.pinned, self.model_class, self.engine)


@dataclass(frozen=True, slots=True)
class HostBackends:
    """The registry of a host with the models that it serves."""

    host: Host
    rows: Sequence[Backend]
    settings: Settings
    models: Sequence[ServedModel]

    def default(self, model_class: str, engine: str) -> Executable:
        """The program of a class where nothing is pinned."""
        return resolve_executable(self.settings, "", model_class, engine)

    def models_of(self, backend: Backend) -> list[ServedModel]:
        """The models that this backend runs."""
        return [model for model in self.models if model.program(self.settings).backend_id == backend.slug]

    def without(self, backend: Backend) -> list[tuple[ServedModel, Executable]]:
        """The models that this backend runs, each with what would run it if the backend were gone."""
        kept = tuple(entry for entry in self.settings.backends if entry.id != backend.slug)
        left = with_registry(self.settings, kept)
        return [(model, model.program(left)) for model in self.models_of(backend)]


def host_backends(host: Host, user: Any) -> HostBackends:
    """The registry with the models of the host that a person sees, in a handful of queries."""
    prefetch_related_objects([host], "backends")
    return HostBackends(host, tuple(host.backends.all()), convert.core_settings(host), tuple(_models(host, user)))


def get_backend(host: Host, pk: int) -> Backend:
    row = host.backends.filter(pk=pk).first()
    if row is None:
        raise NotFound("There is no such backend.")
    row.host = host
    return row


def _models(host: Host, user: Any) -> Iterable[ServedModel]:
    pins = _pins(host)
    rows = seen_rows(user).filter(host=host).exclude(model_class="").exclude(state=Row.State.MISSING)
    values = rows.values_list("pk", "served_id", "model_class", "architecture", "file_name", "path", "quant")
    for pk, served_id, model_class, architecture, name, path, quant in values:
        engine = TTSCPP if model_class == "tts" and tts_engine(architecture, name) == TTSCPP else ""
        yield ServedModel(pk, served_id, model_class, engine, pins(path, quant))


def _pins(host: Host) -> Callable[[str, str], str]:
    """Path and quant of a model -> id of the backend that was chosen for it, "" where none was."""
    stored = StoredOverride.objects.filter(host=host).values_list("match", "quant", "fields")
    rows = [Override(match=match, quant=quant, backend=fields.get("backend", "")) for match, quant, fields in stored]
    # Only where somebody chose a backend is it worth matching patterns against every file.
    overrides = merge_overrides(rows, ()) if any(row.backend for row in rows) else ()

    def same(match: str, path: str) -> bool:
        return path_key(match, host.os_family) == path_key(path, host.os_family)

    def pinned(path: str, quant: str) -> str:
        found = resolve_override(overrides, path, quant, same)
        return found.backend if found is not None else ""

    return pinned
