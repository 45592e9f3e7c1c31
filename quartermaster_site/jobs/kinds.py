"""The kinds of jobs: what runs them, on which queue, and who stores what they report."""

from __future__ import annotations

from dataclasses import dataclass

CONTROL_QUEUE = "control"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job. `task` is a Celery task name, `receiver` the dotted path of a `jobs.receiving.Receiver`."""

    slug: str
    label: str
    task: str
    on_host: bool
    receiver: str = ""
    repeatable: bool = True
    """A lost job of this kind may be started again by itself (publish may not: its outcome is decided by hash)."""
    unit: str = ""
    listed: bool = True
    """Shown in lists of jobs; questions that a page asks by the way are not."""


_SPEECH, _VOICES = "models_app.speech.ask_speech_server", "models_app.services.voice_jobs.VoiceReceiver"
KINDS: tuple[Kind, ...] = (
    Kind("scan", "Scan", "models_app.host_tasks.scan_folders", True, "models_app.receivers.ScanReceiver", unit="files"),
    Kind(
        "browse",
        "Browse folder",
        "models_app.host_tasks.browse_folder",
        True,
        "models_app.receivers.BrowseReceiver",
        listed=False,
    ),
    Kind(
        "probe_devices", "Probe devices", "gpus_app.host_tasks.probe_devices", True, "gpus_app.receivers.DeviceReceiver"
    ),
    Kind(
        "probe_backend",
        "Test backends",
        "models_app.host_tasks.probe_backends",
        True,
        "models_app.receivers.BackendReceiver",
        unit="programs",
    ),
    Kind(
        "find_programs",
        "Look for backends",
        "models_app.program_search.find_programs",
        True,
        "models_app.services.program_search.ProgramSearchReceiver",
        listed=False,
    ),
    Kind(
        "find_checker",
        "Look for llama-fit-params",
        "models_app.host_tasks.find_checker",
        True,
        "models_app.receivers.FindCheckerReceiver",
        listed=False,
    ),
    Kind(
        "verify_memory",
        "Check against llama.cpp",
        "models_app.host_tasks.verify_memory",
        True,
        "models_app.receivers.CheckReceiver",
    ),
    Kind(
        "test_launch",
        "Test launch",
        "models_app.host_tasks.test_launch",
        True,
        "models_app.receivers.TrialReceiver",
        repeatable=False,
    ),
    Kind("plan_host", "Plan host", "models_app.tasks.plan_host", False, unit="models"),
    Kind(
        "import_fetch",
        "Fetch file to import",
        "models_app.import_file.fetch_file",
        True,
        "models_app.services.import_fetching.FetchReceiver",
        repeatable=False,
    ),
    Kind("import_parse", "Read import", "models_app.tasks.read_import", False, repeatable=False, unit="models"),
    Kind("import_apply", "Apply import", "models_app.tasks.apply_import", False, repeatable=False, unit="changes"),
    Kind(
        "publish",
        "Write config",
        "models_app.host_tasks.write_config",
        True,
        "models_app.receivers.PublishReceiver",
        repeatable=False,
    ),
    Kind(
        "look_at_target",
        "Look at the file",
        "models_app.target_look.look_at_target",
        True,
        "models_app.services.target_looks.LookReceiver",
        listed=False,
    ),
    Kind(
        "load_model",
        "Load model",
        "models_app.host_tasks.ask_router",
        True,
        "models_app.receivers.RouterReceiver",
        repeatable=False,
    ),
    Kind(
        "unload_model",
        "Unload model",
        "models_app.host_tasks.ask_router",
        True,
        "models_app.receivers.RouterReceiver",
        repeatable=False,
    ),
    Kind("list_voices", "Ask for voices", _SPEECH, True, _VOICES, listed=False),
    Kind("register_voice", "Register voice", _SPEECH, True, _VOICES),
    Kind("restore_voice", "Register voice again", _SPEECH, True, _VOICES, listed=False),
    Kind("delete_voice", "Delete voice", _SPEECH, True, _VOICES),
    Kind("audition", "Audition", _SPEECH, True, _VOICES, repeatable=False),
)

UNLISTED = tuple(kind.slug for kind in KINDS if not kind.listed)
BY_SLUG = {kind.slug: kind for kind in KINDS}


def choices() -> list[tuple[str, str]]:
    """For model and form fields; a callable, so that a new kind needs no migration."""
    return [(kind.slug, kind.label) for kind in KINDS]
