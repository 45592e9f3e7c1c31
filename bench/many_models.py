"""A host with hundreds of models for benchmarks of lists: the scanned ones again and again under other paths."""

from __future__ import annotations

import itertools


def fill_up(number: int) -> None:
    """Copies of the text models of the only host, until there are so many."""
    from models_app.models import HeaderFacts, Row

    originals = list(Row.objects.filter(model_class="llm", header__facts__isnull=False).select_related("header"))
    missing = number - len(originals)
    for index, row in zip(range(missing), itertools.cycle(originals), strict=False):
        path, name = f"{row.path}.{index}", f"copy-{index}"
        header = HeaderFacts.objects.create(
            host_id=row.host_id, path=path, size_bytes=row.size_bytes, mtime_ns=index, facts=row.header.facts
        )
        Row.objects.create(
            host_id=row.host_id,
            path=path,
            header=header,
            served_id=name,
            base_id=name,
            quant=row.quant,
            file_name=name,
            size_bytes=row.size_bytes,
            model_class="llm",
            model_key=name,
            found={**row.found, "full_path": path},
        )
