"""The verb `vectors`: folders that are none, files that are broken, what the JSON answer holds."""

from __future__ import annotations

import json

import pytest

from tests import vector_runner


def test_a_folder_of_its_own(tmp_path, capsys):
    vector = {
        "area": "headers",
        "input": {"op": "tensor_bytes", "type": "F16", "shape": [32]},
        "expected": {"bytes": 1},
    }
    strange = {"area": "../x", "id": "x-1", "input": {"op": "y"}, "expected": {}}
    (tmp_path / "more.json").write_text(json.dumps([{**vector, "id": "h-1"}, strange]))
    (tmp_path / "table.json").write_text("{}")
    assert vector_runner.main([str(tmp_path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["headers"]["tensor_bytes"] == {"passed": 0, "failed": ["h-1"], "disputed": [], "not_implemented": 0}
    assert answer["../x"]["y"]["not_implemented"] == 1


@pytest.mark.parametrize("content", ["[", "[1]", '[{"id": "a", "area": "b"}]', '[{"id": "a", "input": {"op": "x"}}]'])
def test_a_file_without_vectors_is_said(tmp_path, capsys, content):
    (tmp_path / "headers.json").write_text(content)
    assert vector_runner.main([str(tmp_path)]) == 2
    assert "headers.json" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["missing"], ["--area", "none-such"], ["--op", "none-such"]])
def test_nothing_to_run_is_wrong_usage(words, capsys):
    assert vector_runner.main(words) == 2
    assert "no such vectors" in capsys.readouterr().err
