"""A llama-server command as the guard reads it: everything that decides over memory comes from its own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models_app.core.catalog import Header
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.pins import ALL_LAYERS, AUTO_LAYERS, Pins, flag_values, pins_of
from models_app.core.launch.text_knobs import TextKnobs, text_knobs_of
from models_app.core.launch.tokens import split_flag_token
from models_app.core.planning.batch import DEFAULT_BATCH, DENSE_UBATCH
from models_app.core.planning.drafters import (
    draft_length,
    drafts,
    longest_draft,
    rollback_snapshots,
    uses_baked_head,
)
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.question import Question, Step
from models_app.core.planning.side_memory import DEFAULT_VISION_BYTES, projector_of
from models_app.core.planning.wishes import Companions
from models_app.core.spawn_guard.facts import LeaveAlone
from models_app.core.units import GIB

SERVER_TYPE = "f16"
NO_SPEC = "none"
NOT_FOLLOWED = frozenset(
    {
        *("-ot", "--override-tensor", "-otd", "--override-tensor-draft", "--spec-draft-override-tensor"),
        *("-cmoe", "--cpu-moe", "-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe", "-ncffn", "--n-cpu-ffn"),
        *("-ncmoed", "--n-cpu-moe-draft", "--spec-draft-n-cpu-moe", "--spec-draft-ncmoe"),
        *("-devd", "--device-draft", "--spec-draft-device", "-mmdev", "--mmproj-device", "--rpc", "--no-host"),
        *("-mu", "--model-url", "-dr", "--docker-repo", "-hf", "-hfr", "--hf-repo", "-hff", "--hf-file"),
        *("-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf", "-mmu", "--mmproj-url"),
        *("--embedding", "--embeddings", "--rerank", "--reranking", "--pooling"),
        *("--kv-unified-per-slot", "-lzm", "--lazy-mode", "--override-kv"),
    }
)
"""Flags of llama-server that move memory, or change what needs it, in ways that no projection of ours follows."""


ENVIRONMENT, NEGATED, DRAFTING = "LLAMA_ARG_", "NO_", "SPEC_"
MOVED_FROM_OUTSIDE = frozenset(
    {
        *("BATCH", "UBATCH", "CACHE_TYPE_K", "CACHE_TYPE_V", "FLASH_ATTN", "SWA_FULL", "N_PARALLEL"),
        *("KV_OFFLOAD", "KV_UNIFIED", "KV_UNIFIED_PER_SLOT", "CPU_MOE", "N_CPU_MOE", "N_CPU_FFN", "OVERRIDE_TENSOR"),
        *("DEVICE", "SPLIT_MODE", "TENSOR_SPLIT", "MAIN_GPU", "RPC", "LAZY_MODE"),
        *("MMPROJ", "MMPROJ_URL", "MMPROJ_OFFLOAD", "EMBEDDINGS", "RERANKING", "POOLING"),
    }
)
"""What moves memory when it stands in the environment, where llama-server looks for arguments too."""


@dataclass(frozen=True, slots=True)
class Command:
    """The words of a launch and what they say. Values are the last of their flags, as the server takes them."""

    argv: tuple[str, ...]
    pins: Pins
    knobs: TextKnobs
    given: Mapping[str, str]
    """Knob -> value; a flag without value is there by its canonical spelling."""

    @property
    def program(self) -> str:
        return self.argv[0]

    @property
    def model(self) -> str:
        return self.given.get("model", "")

    @property
    def projector(self) -> str:
        """The projector that goes to the GPU, "" for none."""
        return "" if "--no-mmproj-offload" in self.given else self.given.get("mmprojFile", "")

    @property
    def spec(self) -> str:
        return self.pins.spec or NO_SPEC

    @property
    def drafter(self) -> str:
        """The draft model that goes to the GPU, "" for none."""
        on_gpu = self.given.get("ngld", "") != "0"
        return self.given.get("draftModel", "") if on_gpu and drafts(self.spec) else ""

    @property
    def slots(self) -> int:
        return self.pins.parallel or 1

    @property
    def window_tokens(self) -> int:
        """Of one slot."""
        return max(1, (self.pins.ctx or 0) // self.slots)

    @property
    def pair(self) -> KvPair:
        return KvPair(self.pins.kv_k or SERVER_TYPE, self.pins.kv_v or SERVER_TYPE)


def read_command(argv: Sequence[str]) -> Command:
    """Raises LeaveAlone for a command whose placement is not for the guard to change (sizing.md 16.1)."""
    words = list(argv)
    command = Command(tuple(words), pins_of(words[1:]), text_knobs_of(words[1:]), dict(flag_values(words[1:])))
    if reason := _reason_to_leave(command):
        raise LeaveAlone(reason)
    return command


def moved_from_outside(environment: Mapping[str, str]) -> str:
    """The variable that gives llama-server an argument over memory, "" for none."""
    for name in environment:
        stem = name.removeprefix(ENVIRONMENT).removeprefix(NEGATED)
        if name.startswith(ENVIRONMENT) and (stem in MOVED_FROM_OUTSIDE or stem.startswith(DRAFTING)):
            return name
    return ""


def _reason_to_leave(command: Command) -> str:
    given, pins = command.given, command.pins
    names = (LLAMA.folded(split_flag_token(word).name) for word in command.argv[1:])
    if found := next((name for name in names if name in NOT_FOLLOWED), ""):
        return f"the estimate does not follow {found}"
    if not command.model.lower().endswith(".gguf"):
        return "its model is no GGUF file"
    if given.get("device", "").lower() == "none" or pins.ngl == 0:
        return "it keeps off the GPU"
    if pins.ngl is None or pins.ngl == AUTO_LAYERS:
        return "the server places its layers itself"
    if pins.ctx is None:
        return "it names no context size"
    if (mode := given.get("splitMode", "layer")) not in ("layer", "none"):
        return f"the estimate does not follow --split-mode {mode[:20]}"
    return ""


def step_of(command: Command, header: Header) -> Step:
    """The rung of the ladder of placements that the command stands on."""
    everything, layers = header.block_count + 1, command.pins.ngl or 0
    experts = command.pins.n_cpu_moe or 0
    return Step(
        everything if layers <= ALL_LAYERS else min(max(0, layers), everything),
        min(max(0, experts), header.block_count) if header.is_moe else 0,
    )


def question_of(command: Command, header: Header) -> Question:
    """The launch as planning asks for it, its split left open."""
    knobs, pins, spec = command.knobs, command.pins, command.spec
    draft_tokens = draft_length(spec, knobs.draft_tokens)
    ngram = command.given.get("specNgramSizeM", "")
    return Question(
        ceiling_tokens=command.window_tokens,
        kv_pairs=(command.pair,),
        ctx=command.window_tokens,
        slots=command.slots,
        ubatch=pins.ub or DENSE_UBATCH,
        batch=knobs.batch or DEFAULT_BATCH,
        kv_in_ram=pins.kv_in_ram,
        kv_unified=knobs.kv_unified,
        flash_attn=knobs.flash_attn.lower() not in ("off", "0", "disabled", "false"),
        swa_full=knobs.swa_full,
        rollback_snapshots=rollback_snapshots(header.architecture, spec, draft_tokens),
        draft_tokens=longest_draft(spec, draft_tokens, int(ngram) if ngram.isdecimal() and len(ngram) < 7 else 0),
    )


def companions_of(command: Command, header: Header, projector: Header | None, sizes: Mapping[str, int]) -> Companions:
    """What the launch loads beside the model. `sizes` are bytes by path; a file without one is not there."""
    beside = sizes.get(command.projector, 0)
    drafter = sizes.get(command.drafter, 0)
    flat_gib = DEFAULT_VISION_BYTES / GIB
    return Companions(
        projector=projector_of(projector, beside, flat_gib, in_ram=False) if command.projector and beside else None,
        draft_file_bytes=drafter,
        baked_head=uses_baked_head(command.spec, header.nextn_layers, bool(drafter)),
        draft_k=command.knobs.draft_k or SERVER_TYPE,
        draft_v=command.knobs.draft_v or SERVER_TYPE,
    )
