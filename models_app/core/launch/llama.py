"""The command of llama-server (launch.md 2 and 3).

Each part is a function that gives its lines; `_PARTS` is their order. The result depends on nothing but the arguments,
so that a preview, a save and a published entry are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from models_app.core.catalog import Header, Placement, Row
from models_app.core.launch.backends import executable
from models_app.core.launch.compose import Composition, compose
from models_app.core.launch.launcher import Launcher
from models_app.core.launch.llama_advanced import advanced_lines
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.lora import lora_lines, scale_problems
from models_app.core.launch.macros import PORT
from models_app.core.launch.ownership import custom_text, runs_text_only
from models_app.core.launch.paths import quoted_path, raw_path
from models_app.core.launch.pins import ALL_LAYERS, AUTO_LAYERS, Pins, read_pins
from models_app.core.launch.profile import LaunchProfile
from models_app.core.launch.samplers import dry_lines, sampler_lines
from models_app.core.launch.tokens import POSIX, quote
from models_app.core.planning.drafters import draft_file_attaches, draft_kv_pair, draft_length, drafts, spec_chain
from models_app.core.planning.kv_types import KvPair
from models_app.core.settings import Override, Settings

DRAFT_GPU_LAYERS = 99
"""More than any drafter has: all of it."""


@dataclass(frozen=True, slots=True)
class LlamaLaunch:
    """Everything one llama-server command is made from. `override` is the effective one, variant merged in.

    `cache_dir` is the folder under which slots are saved when the settings name none. `joined_lora_scale` says that
    the build reads `--lora-scaled FNAME:SCALE`.
    """

    settings: Settings
    header: Header
    row: Row
    profile: LaunchProfile
    placement: Placement
    override: Override
    cache_dir: str = ""
    joined_lora_scale: bool = False
    rules: str = POSIX

    @property
    def pins(self) -> Pins:
        return read_pins(custom_text(self.override), self.rules)

    @property
    def gpu_layers(self) -> int:
        return 0 if self.override.device == "cpu" else self.placement.gpu_layers

    @property
    def pool_tokens(self) -> int:
        """The value of `-c`: the window of one slot times the slots."""
        return self.placement.ctx_tokens * self.placement.slots


def llama_lines(
    settings: Settings,
    header: Header,
    row: Row,
    profile: LaunchProfile,
    placement: Placement,
    override: Override | None = None,
    *,
    cache_dir: str = "",
    joined_lora_scale: bool = False,
    rules: str = POSIX,
) -> list[str]:
    """The generated lines, executable first, without the person's text. No override gives the lines of a blank one."""
    launch = LlamaLaunch(
        settings, header, row, profile, placement, override or Override(), cache_dir, joined_lora_scale, rules
    )
    return [line for part in _PARTS for line in part(launch)]


def llama_command(
    settings: Settings,
    header: Header,
    row: Row,
    profile: LaunchProfile,
    placement: Placement,
    override: Override | None = None,
    *,
    cache_dir: str = "",
    joined_lora_scale: bool = False,
    rules: str = POSIX,
) -> Composition:
    """The whole command: generated lines with the person's text laid over them."""
    lines = llama_lines(
        settings,
        header,
        row,
        profile,
        placement,
        override,
        cache_dir=cache_dir,
        joined_lora_scale=joined_lora_scale,
        rules=rules,
    )
    composed = compose(LLAMA, lines, custom_text(override), rules, alone=runs_text_only(override))
    doubts = scale_problems(composed.argv) if joined_lora_scale else ()
    return replace(composed, warnings=(*composed.warnings, *doubts)) if doubts else composed


def slot_cache_folder(settings: Settings, cache_dir: str) -> str:
    """Where conversations are saved: the configured folder, else `slotkv` in the cache folder; blank without both."""
    if settings.slot_cache.path.strip():
        return settings.slot_cache.path
    return f"{cache_dir.rstrip('/')}/slotkv" if cache_dir.strip() else ""


def load_mode(override: Override, on_cpu: bool) -> str:
    """The value of `--load-mode`; "" where the server's own default is right (launch.md 3.2)."""
    if override.direct_io:
        return "dio"
    mapped = override.mmap == "on" or (on_cpu and override.mmap != "off")
    if override.mlock:
        return "mmap+mlock" if mapped else "mlock"
    return "" if mapped else "none"


def runs_on_cpu(launch: LlamaLaunch) -> bool:
    """Whether parts of the model run on the CPU, by the values that will really be used.

    `-ngl` equal to the block count leaves the output layer there. An unknown block count counts as GPU resident.
    """
    pins, blocks = launch.pins, launch.header.block_count
    experts = launch.placement.cpu_moe_layers if pins.n_cpu_moe is None else pins.n_cpu_moe
    if experts > 0:
        return True
    layers = launch.gpu_layers if pins.ngl is None or pins.ngl == AUTO_LAYERS else pins.ngl
    return ALL_LAYERS < layers <= blocks if blocks > 0 else False


def _endpoint(launch: LlamaLaunch) -> list[str]:
    return [
        executable(launch.settings, launch.override, "llm"),
        f"-m {raw_path(launch.row.full_path)}",
        f"--port {PORT}",
        "--host 127.0.0.1",
        # The server's own default reflects any Origin, with credentials.
        "--cors-origins localhost",
    ]


def _placement(launch: LlamaLaunch) -> list[str]:
    place, own = launch.placement, launch.override
    mode = load_mode(own, runs_on_cpu(launch))
    hygiene = [f"--parallel {place.slots}"]
    hygiene += [f"--load-mode {mode}"] if mode else []
    hygiene += ["--no-kv-offload"] if place.kv_in_ram else []
    hygiene += ["--kv-unified", "--no-warmup", "--no-ui", "--metrics", "--props"]
    return [
        f"-ngl {launch.gpu_layers}",
        f"-c {launch.pool_tokens}",
        f"-ub {place.ubatch} -b {place.batch}",
        f"-fa {quote(own.flash_attn or 'on')} -ctk {place.type_k} -ctv {place.type_v}",
        " ".join(hygiene),
    ]


def _devices(launch: LlamaLaunch) -> list[str]:
    """The planned split. What the override says about devices stands among the advanced lines, instead of it."""
    profile, own = launch.profile, launch.override
    if own.device == "cpu":
        return ["--device none"]
    if launch.gpu_layers > 0 and profile.lone_gpu and own.main_gpu <= 0:
        return [f"--main-gpu {profile.lone_gpu}"]
    if len(profile.tensor_split) < 2 or launch.gpu_layers == 0:
        return []
    # A hand-written ratio addresses the devices in the backend's own order.
    own_split = bool(own.tensor_split.strip())
    parts = [f"--device {','.join(profile.device_ids)}"] if profile.device_ids and not own_split else []
    parts += ["-sm layer"] if not own.split_mode else []
    parts += [f"--main-gpu {profile.main_gpu}"] if own.main_gpu <= 0 else []
    lines = [" ".join(parts)] if parts else []
    return lines if own_split else [*lines, f"--tensor-split {','.join(profile.tensor_split)}"]


def _projector(launch: LlamaLaunch) -> list[str]:
    path = launch.override.mmproj_file.strip() or launch.row.mmproj_path
    if not launch.profile.vision or not path:
        return []
    return [f"--mmproj {raw_path(path)}", *(["--no-mmproj-offload"] if launch.profile.projector_in_ram else [])]


def _speculation(launch: LlamaLaunch) -> list[str]:
    spec, row, own = launch.profile.spec, launch.row, launch.override
    lines = [f"--spec-type {quote(element)}" for element in spec_chain(spec)]
    if drafts(spec):
        lines.append(f"--spec-draft-n-max {draft_length(spec, own.spec_draft_n_max)}")
        if row.draft_path and draft_file_attaches(spec, row.draft_kind):
            lines += [f"-md {raw_path(row.draft_path)}", f"-ngld {DRAFT_GPU_LAYERS}"]
        main = KvPair(launch.placement.type_k, launch.placement.type_v)
        pair = draft_kv_pair(own.kv_k_draft, own.kv_v_draft, main)
        lines.append(f"-ctkd {pair.k} -ctvd {pair.v}")
    if own.spec_default:
        lines.append("--spec-default")
    if "ngram-map-k4v" in spec_chain(spec):
        sizes = (
            ("size-n", own.spec_ngram_size_n),
            ("size-m", own.spec_ngram_size_m),
            ("min-hits", own.spec_ngram_min_hits),
        )
        lines += [f"--spec-ngram-map-k4v-{name} {value}" for name, value in sizes if value > 0]
    return lines


def _reasoning(launch: LlamaLaunch) -> list[str]:
    own = launch.override
    wish = launch.profile.reasoning_fmt or own.reasoning_fmt
    if wish == "off":
        return ["--jinja --reasoning-format none --reasoning off"]
    lines = [f"--jinja --reasoning-format {quote(wish or 'auto')}"]
    if own.reasoning_budget > 0:
        lines.append(f"--reasoning-budget {own.reasoning_budget}")
    if own.preserve_thinking is not False:
        lines.append("--reasoning-preserve")
    return lines


def _checkpoints(launch: LlamaLaunch) -> list[str]:
    checkpoints = launch.profile.checkpoints
    lines = [f"--ctx-checkpoints {checkpoints.count}"]
    return [*lines, f"-cms {checkpoints.spacing}"] if checkpoints.count > 0 else lines


def _sampling(launch: LlamaLaunch) -> list[str]:
    return dry_lines(launch.settings, launch.override) + sampler_lines(launch.header.architecture, launch.override)


def _threads(launch: LlamaLaunch) -> list[str]:
    threads = launch.override.threads if launch.override.threads > 0 else launch.settings.threads
    experts = launch.placement.cpu_moe_layers
    return [f"-t {threads}" + (f" --n-cpu-moe {experts}" if experts > 0 else "")]


def _files(launch: LlamaLaunch) -> list[str]:
    lines = []
    folder = slot_cache_folder(launch.settings, launch.cache_dir)
    if launch.settings.slot_cache.enable and launch.override.slot_cache is True and folder:
        lines.append(f"--slot-save-path {quoted_path(folder)}")
    if launch.override.chat_template_file.strip():
        lines.append(f"--chat-template-file {quoted_path(launch.override.chat_template_file)}")
    return lines


def _advanced(launch: LlamaLaunch) -> list[str]:
    return advanced_lines(launch.override, launch.placement.ctx_tokens, launch.header.context_length)


def _adapters(launch: LlamaLaunch) -> list[str]:
    return lora_lines(launch.settings, launch.override, launch.row.full_path, joined_scale=launch.joined_lora_scale)


_PARTS: tuple[Callable[[LlamaLaunch], list[str]], ...] = (
    _endpoint,
    _placement,
    _devices,
    _projector,
    _speculation,
    _reasoning,
    _checkpoints,
    _sampling,
    _threads,
    _files,
    _advanced,
    _adapters,
)

LAUNCHER = Launcher(
    kind="llama",
    classes=("llm", "embedding", "decision"),
    formats=("gguf",),
    health_path="/health",
    table=LLAMA,
    command=llama_command,
)
