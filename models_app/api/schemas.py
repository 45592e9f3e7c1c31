"""What the API takes and gives. Sizes are bytes, times ISO 8601 in UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

MOST_NAME = 80
"""Characters of a name that an error gives back."""


class DeviceOut(Schema):
    """A GPU as it was last measured. `shared_*` is memory of the host that it may borrow."""

    index: int
    name: str
    integrated: bool
    total_bytes: int
    free_bytes: int
    shared_total_bytes: int
    shared_free_bytes: int
    eligible: bool
    eligible_reason: str


class RevisionOut(Schema):
    """A text of the router's file, without the text."""

    number: int
    state: str
    dialect: str
    sha256: str
    created_at: datetime
    written_at: datetime | None
    findings: list[dict[str, Any]]


class RevisionTextOut(RevisionOut):
    """A text of the router's file; secrets are placeholders."""

    text: str


class HostOut(Schema):
    """A machine with a worker."""

    slug: str
    name: str
    state: str
    last_seen_at: datetime | None
    dialect: str
    publish_path: str
    ram_total_bytes: int
    vram_target_bytes: int
    ram_limit_bytes: int
    devices: list[DeviceOut]
    newest_revision: int | None
    written_revision: int | None


class PlanSummaryOut(Schema):
    """The stored result for one profile."""

    profile_id: str
    profile: str
    verdict: str
    ctx_tokens: int
    est_vram_bytes: int
    est_ram_bytes: int
    placement: str
    warning_count: int
    skip_reason: str
    planned_at: datetime


class ModelOut(Schema):
    """A model file with its stored plans, the base first."""

    id: int
    host: str
    served_id: str
    model_class: str
    architecture: str
    quant: str
    path: str
    size_bytes: int
    state: str
    state_reason: str
    plans: list[PlanSummaryOut]


class ModelPageOut(Schema):
    items: list[ModelOut]
    total: int
    offset: int


class TermOut(Schema):
    """One part of a plan's memory: on each device, in order, and in RAM."""

    key: str
    label: str
    device_bytes: list[int]
    ram_bytes: int


class PlacementOut(Schema):
    """What the search chose or somebody pinned; `ctx_tokens` is the window of one slot, `gpu_layers` as emitted."""

    ctx_tokens: int
    gpu_layers: int
    cpu_moe_layers: int
    type_k: str
    type_v: str
    ubatch: int
    batch: int
    slots: int
    tensor_split: list[float]
    kv_in_ram: bool


class PlanOut(Schema):
    """A plan computed now, with its command and its reasons."""

    profile_id: str
    profile: str
    engine: str
    verdict: str
    placement: PlacementOut | None
    est_vram_bytes: int
    est_ram_bytes: int
    target_bytes: int
    terms: list[TermOut]
    argv: list[str]
    reasons: list[str]
    warnings: list[str]
    suggestions: list[str]
    skip_reason: str


class PreviewIn(Schema):
    """Values to try, by the keys of the what-if form; what is left out is as stored."""

    values: dict[str, str | int | float | bool] = Field(max_length=64)


class JobOut(Schema):
    """Work in the background."""

    id: int
    kind: str
    host: str
    state: str
    state_reason: str
    subject: str
    phase: str
    done: int
    total: int | None
    error: str
    advice: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobPageOut(Schema):
    items: list[JobOut]
    total: int
    offset: int


class PublishIn(Schema):
    """Which text to write. `path` guards against a target that moved, `slug` confirms a mass change, `confirm` names
    the rules whose findings are confirmed (`V-08`).
    """

    revision: int = Field(ge=1, le=2**31)
    message: str = Field("", max_length=500)
    path: str | None = Field(None, max_length=1024)
    slug: str = Field("", max_length=40)
    confirm: list[str] = Field([], max_length=8)
