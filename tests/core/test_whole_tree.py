"""A tree of every kind of file: each row, pairing, finding and dropped file, as a person would expect them.

The expected table is tests/golden/whole_tree.txt. Rewrite it with `WRITE_GOLDEN=1 pytest`, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models_app.core.catalog import Header, Row
from models_app.core.components.scan import survey
from models_app.core.discovery.inventory import HeaderOf, discover, reader_of
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.names import unique_names
from models_app.core.discovery.roots import Root
from models_app.core.discovery.selection import select
from models_app.core.discovery.walk import list_files
from models_app.core.errors import HeaderError
from models_app.core.readers import read_header
from models_app.scanning import read_candidate
from tests.whole_tree import build

GOLDEN = Path(__file__).parents[1] / "golden" / "whole_tree.txt"


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Listing:
    base = tmp_path_factory.mktemp("tree")
    return list_files([Root(*root) for root in build(base)], platform="linux")


def test_the_tree_is_large_enough(listing: Listing) -> None:
    assert listing.file_count >= 150


def test_the_whole_table(listing: Listing) -> None:
    base = os.path.dirname(listing.roots[0].root.path)
    text = "\n".join(_table(listing)).replace(base + "/", "").replace(base, "") + "\n"
    if os.environ.get("WRITE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_rows_do_not_depend_on_the_order_of_roots_for_their_pairings(listing: Listing) -> None:
    turned = Listing(listing.platform, tuple(reversed(listing.roots)), package_bytes=listing.package_bytes)
    pairs = [{row.full_path: (row.mmproj_path, row.draft_path) for row in _rows(item)} for item in (listing, turned)]
    assert all(pairs[1].get(path, pair) == pair for path, pair in pairs[0].items())


def _rows(listing: Listing) -> tuple[Row, ...]:
    return discover(listing, _headers(listing)).rows


def _headers(listing: Listing) -> HeaderOf:
    results: dict[str, Header | HeaderError] = {}
    for candidate in select(listing).candidates:
        results[candidate.path] = read_candidate(candidate, None)
    return reader_of(results)


def _table(listing: Listing) -> list[str]:
    inventory = discover(listing, _headers(listing))
    names = unique_names(inventory.rows)
    lines = ["# rows: served name | class | quant | publisher/repo | path"]
    for name, row in zip(names, inventory.rows, strict=True):
        owner = f"{row.publisher}/{row.repo}"
        lines.append(f"{name} | {row.model_class or '-'} | {row.quant or '-'} | {owner} | {row.full_path!r}"[:400])
        lines += [f"    {role} {origin}: {path}" for role, origin, path in _pairs(row)]
        if row.missing_shards:
            lines.append(f"    missing {row.missing_shards} of {row.shard_count}")
    lines += ["", "# findings"]
    lines += sorted(f"{item.level} {item.kind}: {item.path!r}: {item.text}" for item in inventory.findings)
    lines += ["", "# no rows"]
    lines += sorted(f"{item.kind}: {item.path!r}: {item.reason}" for item in inventory.dropped)
    lines += ["", "# components: path | role | family | width | projector | recognised by"]
    found = survey(select(listing), read_header)
    for entry in found.entries:
        shown = f"{entry.path!r} | {entry.role} | {entry.family or '-'} | {entry.width} | {entry.mmproj or '-'}"
        lines.append(f"{shown} | {entry.recognised_by}" + (" | sees" if entry.vision else ""))
        lines += [f"    withheld: {entry.withheld}"] if entry.withheld else []
    lines += ["", "# files beside"]
    lines += [f"{item.level} {item.kind}: {item.path!r}: {item.text}" for item in found.findings]
    return lines


def _pairs(row: Row) -> list[tuple[str, str, str]]:
    return [
        (role, origin, path)
        for role, origin, path in (
            ("drafter", row.draft_origin, row.draft_path),
            ("projector", row.mmproj_origin, row.mmproj_path),
            ("codec", "folder", row.codec_path),
        )
        if path
    ]
