"""A generate file with the sidecar beside it, read from disk as one input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models_app.core.errors import SettingsError
from models_app.core.export.load import MAX_BYTES, LoadError
from models_app.core.settings import Settings
from models_app.core.settings_files.files import (
    GenerateFile,
    OwnSettings,
    ReadFile,
    must_be_sound,
    read_generate_file,
    read_sidecar,
    state_of,
)
from models_app.core.state.loading import LoadedState
from models_app.core.state.sidecar import FILE_NAME, Sidecar


@dataclass(frozen=True, slots=True)
class Pair:
    """Both files as they were read at one moment, with their bytes: those are part of the digest."""

    file_path: Path
    sidecar_path: Path
    file: ReadFile[GenerateFile]
    sidecar: ReadFile[Sidecar]
    file_bytes: bytes
    sidecar_bytes: bytes

    @property
    def own(self) -> OwnSettings:
        return self.file.content.own

    @property
    def warnings(self) -> tuple[str, ...]:
        """Keys that nothing reads, one sentence each."""
        read = ((self.file_path, self.file.unknown), (self.sidecar_path, self.sidecar.unknown))
        return tuple(f"{path}: {remark}" for path, remarks in read for remark in remarks)

    def state(self, models_dir: str = "") -> LoadedState:
        """What planning starts from. Raises `SettingsError` where a file has a fault."""
        generate_file = must_be_sound(str(self.file_path), self.file)
        sidecar = must_be_sound(str(self.sidecar_path), self.sidecar)
        return state_of(generate_file, sidecar, models_dir=models_dir)

    def sets(self, key: str) -> bool:
        """Whether one of the files sets a budget: 0 in the generate file is nothing, in the sidecar a value."""
        patch = self.sidecar.content.settings or {}
        return patch.get(key) is not None or bool(self.file.content.settings.get(key))


def read_pair(settings_file: Path, sidecar_file: Path | None = None) -> Pair:
    """Both files; the sidecar is the one beside the settings file unless another is named, and may be missing.

    Raises `SettingsError` for a file that cannot be read or is no YAML map. Single faults come with `Pair.state`.
    """
    beside = settings_file.parent / FILE_NAME if sidecar_file is None else sidecar_file
    file_bytes = _bytes(settings_file)
    sidecar_bytes = b"" if sidecar_file is None and not beside.exists() else _bytes(beside)
    try:
        generate_file = read_generate_file(file_bytes)
    except LoadError as error:
        raise SettingsError(f"{settings_file}: {error}") from error
    try:
        sidecar = read_sidecar(sidecar_bytes)
    except LoadError as error:
        raise SettingsError(f"{beside}: {error}") from error
    return Pair(settings_file, beside, generate_file, sidecar, file_bytes, sidecar_bytes)


def _bytes(path: Path) -> bytes:
    """At most one byte more than a file may have: enough to know that it is too long."""
    try:
        if not path.is_file():
            raise SettingsError(f"{path}: {'is no file' if path.exists() else 'does not exist'}")
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from error


def executables_of(settings: Settings) -> list[str]:
    """Every executable that settings name, in the registry or the older keys."""
    older = [settings.server_exe, settings.sd_server_exe, settings.tts_server_exe, settings.asr_server_exe]
    return [*(entry.path for entry in settings.backends), *older]
