"""Every vector is one test case. Operations without an adapter are counted and shown, never hidden."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.vector_runner import AREAS, DEFAULT_FOLDER, adapters_of, load_disputed, load_vectors, run_vector

VECTORS = load_vectors(DEFAULT_FOLDER)
DISPUTED = load_disputed(DEFAULT_FOLDER, (vector["id"] for vector in VECTORS))
ADAPTERS = {area: adapters_of(area) for area in AREAS}
IMPLEMENTED = [vector for vector in VECTORS if vector["input"]["op"] in ADAPTERS[vector["area"]]]


@pytest.mark.parametrize("vector", IMPLEMENTED, ids=lambda vector: vector["id"])
def test_vector(vector):
    outcome = run_vector(vector, ADAPTERS[vector["area"]], vector["id"] in DISPUTED)
    assert outcome.state in ("passed", "disputed"), "\n".join(outcome.details)


def test_operations_without_adapter_are_known(record_property):
    missing = Counter(vector["area"] for vector in VECTORS if vector["input"]["op"] not in ADAPTERS[vector["area"]])
    record_property("not_implemented", dict(missing))
    assert not missing, "an adapter disappeared, or vectors of a new operation have none"
