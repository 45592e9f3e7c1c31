"""What tests of the planning core share: headers of every model with figures of llama.cpp."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from models_app.core.catalog import Header
from models_app.core.readers import read_header
from tests import truth_table


@pytest.fixture(scope="session")
def header_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Header]:
    """`header_of("jamba-3")`: the header of a model of any table of `truth_table`, each written and read once."""
    folder = tmp_path_factory.mktemp("measured")
    return functools.cache(lambda name: read_header(truth_table.write(name, folder)))
