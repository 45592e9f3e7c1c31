"""Speculative decoding as far as memory and flags depend on it (sizing.md 7.2 and 18.4, launch.md 3.3)."""

from __future__ import annotations

from models_app.core.planning.kv_types import KvPair, resolve_kv_pair

MTP = "draft-mtp"
DFLASH = "draft-dflash"
AUTO_MTP = "draft-mtp+ngram-mod"
AUTO_PLAIN = "ngram-mod"

_KIND_OF_ELEMENT = {MTP: "mtp", DFLASH: "dflash"}

_NGRAM_LENGTHS = {
    "none": 0,
    "ngram-mod": 64,
    "ngram-cache": 8,
    "ngram-simple": 48,
    "ngram-map-k": 48,
    "ngram-map-k4v": 48,
}
"""Longest draft of the elements that need no model, as llama-server has it without their own flags."""

_SNAPSHOT_ELEMENTS = frozenset({MTP, DFLASH, "draft-eagle3", "eagle3", "dflash", "draft-dspark", "dspark"})
_SNAPSHOT_ARCHITECTURES = frozenset(
    {
        "kimi-k3",
        "qwen35",
        "qwen35moe",
        "qwen4exp",
        "deepseek4",
        "glm5-next",
        "nemotron_h",
        "nemotron_h_moe",
        "lfm2",
        "lfm2moe",
        "bailingmoe3",
    }
)
"""Architectures that keep copies of their recurrent state, to roll back rejected drafts."""


def spec_chain(spec: str) -> tuple[str, ...]:
    """The elements of a chain, in order."""
    return tuple(part.strip() for part in spec.split("+") if part.strip())


def effective_spec(has_mtp_layers: bool, draft_kind: str, *wishes: str) -> str:
    """The chain of a launch: the first wish that is not blank, else what the header and the paired file allow."""
    for wish in wishes:
        if wish.strip():
            return wish.strip()
    return AUTO_MTP if has_mtp_layers or draft_kind == "mtp" else AUTO_PLAIN


def offered_chains(has_mtp_layers: bool, draft_kind: str) -> tuple[str, ...]:
    """Chains that a model can run: with a drafter only where the header or the paired file has one."""
    kinds = {"mtp": has_mtp_layers or draft_kind == "mtp", "dflash": draft_kind == "dflash"}
    drafters = [element for element, kind in _KIND_OF_ELEMENT.items() if kinds[kind]]
    with_drafter = [chain for drafter in drafters for chain in (f"{drafter}+{AUTO_PLAIN}", drafter)]
    return (*with_drafter, AUTO_PLAIN, "ngram-map-k4v", "none")


ALL_CHAINS = offered_chains(True, "dflash")
"""For forms that are about many models."""


def spec_problem(spec: str) -> str:
    """Why a text is no chain, "" when it is one; blank says nothing."""
    chain = spec_chain(spec)
    unknown = [part for part in chain if part not in _NGRAM_LENGTHS and part not in _SNAPSHOT_ELEMENTS]
    if unknown:
        return f"{unknown[0][:40]} is not known; join draft-mtp, draft-dflash, ngram-map-k4v and ngram-mod by +."
    return "none stands alone." if "none" in chain and len(chain) > 1 else ""


def drafts(spec: str) -> bool:
    """Does the chain hold an element that drafts with a model?"""
    chain = spec_chain(spec)
    return MTP in chain or DFLASH in chain


def draft_length(spec: str, explicit: int = 0) -> int:
    """The value of `--spec-draft-n-max`; 0 for a chain without a drafter."""
    if not drafts(spec):
        return 0
    if explicit > 0:
        return explicit
    return 5 if DFLASH in spec_chain(spec) else 2


def longest_draft(spec: str, draft_tokens: int, ngram_tokens: int = 0) -> int:
    """Tokens that any element of the chain may draft at once: llama-server asks for so many more rows of logits.

    `draft_tokens` is the value of `--spec-draft-n-max`, `ngram_tokens` that of `--spec-ngram-map-k4v-size-m` (0 for
    the server's own).
    """
    lengths = {**_NGRAM_LENGTHS, "ngram-map-k4v": ngram_tokens or _NGRAM_LENGTHS["ngram-map-k4v"]}
    return max((lengths.get(element, draft_tokens) for element in spec_chain(spec)), default=0)


def draft_file_attaches(spec: str, draft_kind: str) -> bool:
    """Is the paired draft file loaded? Only where its kind matches an element of the chain."""
    chain = spec_chain(spec)
    return any(kind == draft_kind and element in chain for element, kind in _KIND_OF_ELEMENT.items())


def uses_baked_head(spec: str, nextn_layers: int, draft_file_attached: bool) -> bool:
    """Does the launch open a context on the model's own draft layers?"""
    return nextn_layers > 0 and MTP in spec_chain(spec) and not draft_file_attached


def draft_kv_pair(k: str, v: str, main: KvPair) -> KvPair:
    """Types of the draft context: the pair rule over the types of the main context."""
    return resolve_kv_pair(k, v, main.k)


def rollback_snapshots(architecture: str, spec: str, draft_tokens: int) -> int:
    """Copies of the recurrent state a launch keeps besides the live one (sizing.md 18.4, n_rs)."""
    if architecture not in _SNAPSHOT_ARCHITECTURES or not _SNAPSHOT_ELEMENTS.intersection(spec_chain(spec)):
        return 0
    return max(0, draft_tokens)
