"""What machines ask over HTTP: to enrol with a code, and what the server wants of them. JSON, no session, no token."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from gpus_app import agents, enrolment
from gpus_app.models import Agent
from quartermaster_site.access.networks import group_of
from quartermaster_site.agent.identity import is_signed
from quartermaster_site.errors import Busy, Gone, NotAllowed
from quartermaster_site.http import client_address, client_of_request
from quartermaster_site.rate import RateLimit
from quartermaster_site.version import product_version

router = Router()
ENROLMENTS = RateLimit(per_second=0.2, burst=10)
CHECKS = RateLimit(per_second=2, burst=60)
"""For each address."""


class EnrolIn(Schema):
    """A code and the key that the machine made for itself."""

    code: str = Field(max_length=100)
    public_key: str = Field(max_length=64)
    worker: str = Field(max_length=64)
    version: str = Field(max_length=32)
    protocol: int = Field(ge=0, le=1 << 30)


class CheckIn(Schema):
    """Who asks, as JSON, and the signature of that text."""

    body: str = Field(max_length=2000)
    signature: str = Field(max_length=128)


class Asker(Schema):
    """The body of a check."""

    enrolment: str = Field(max_length=32)
    instance: str = Field(max_length=32)
    worker: str = Field(max_length=64)
    version: str = Field(max_length=32)
    protocol: int = Field(ge=0, le=1 << 30)
    leaving: bool = False
    """It stops by request."""
    sent_at: float | None = Field(default=None, ge=0, le=1e11)
    """Seconds since 1970 by its clock."""


@router.post("/agents/enrol/", auth=None, include_in_schema=False)
def enrol(request: HttpRequest, asked: EnrolIn) -> dict[str, Any]:
    """Identity and broker for a code."""
    address = _limited(ENROLMENTS, request)
    given = enrolment.redeem(**asked.model_dump(), address=address)
    return {**given, "version": product_version()}


@router.post("/agents/check/", auth=None, include_in_schema=False)
def check(request: HttpRequest, asked: CheckIn) -> dict[str, Any]:
    """Whether the machine may go on: `state` is ok, second or mismatch. Gone for one that was cut off."""
    address = _limited(CHECKS, request)
    try:
        asker = Asker(**json.loads(asked.body))
    except (ValueError, TypeError, RecursionError) as error:
        raise NotAllowed("The body cannot be used.") from error
    agent = Agent.objects.select_related("host").filter(enrolment=asker.enrolment).first()
    if agent is None or not is_signed(agent.public_key, asked.signature, asked.body.encode("utf-8", "replace")):
        raise Gone(
            "This machine's enrolment is not valid any more: its host was removed or enrolled anew. Stop this agent, "
            "or enrol the machine again with a new code."
        )
    if asker.leaving:
        agents.leave(agent, asker.instance)
        return {"state": "ok"}
    return agents.check_in(agent, **asker.model_dump(exclude={"enrolment", "leaving"}), address=address)


def _limited(limit: RateLimit, request: HttpRequest) -> str:
    """The address of a caller who may go on. Raises Busy."""
    address = client_address(request)
    if wait := limit.wait_seconds(group_of(client_of_request(request))):
        raise Busy("Too many requests from this address.", wait_seconds=max(1, round(wait)))
    return address
