"""What the tests of imports share: a batch's parts, and what texts mean."""

from __future__ import annotations

import yaml

from models_app.core.imports.meaning import meaning_of
from models_app.models import Revision
from models_app.services.import_applying import items_of_batch
from models_app.services.import_config import without_secrets


def models(batch):
    return batch.report["models"]


def items(batch, status=None, kind=None):
    return [
        item
        for item in items_of_batch(batch)
        if (status is None or item.status == status) and (kind is None or item.target.kind == kind)
    ]


def written(host, dialect="llama-swap"):
    """What the newest text of the host means."""
    revision = Revision.objects.filter(host=host).order_by("-number").first()
    assert revision.state == "validated", revision.findings
    return without_secrets(meaning_of(revision.text.encode(), dialect))


def meaning(config, dialect="llama-swap"):
    return without_secrets(meaning_of(yaml.safe_dump(config, sort_keys=False).encode(), dialect))
