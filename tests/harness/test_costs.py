"""The file cost.json of a run folder: absent, damaged, of this model or of another."""

import json

import pytest

from hardlook.errors import DataError
from hardlook.harness.costs import COST_FILE, CostMeasure, is_cost_of, read_cost

MEASURE = CostMeasure(lambda model, threads: {}, lambda content: {"ms": content["ms"] + 0.0}, lambda runs: None)
MODEL = {
    "name": "ritm",
    "weights": {"a.pth": "1f"},
    "device": "cuda",
    "args": {"weights": "folder/a.pth", "zoom": True, "device": "cuda"},
}


def test_a_stored_cost_is_read_and_none_is_no_error(tmp_path):
    assert read_cost(tmp_path, MEASURE) is None
    (tmp_path / COST_FILE).write_text('{"ms": 3, "model": {}}')
    assert read_cost(tmp_path, MEASURE) == {"ms": 3, "model": {}}


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"model": {}}', '{"ms": "fast"}', '{"ms": null}', "\x00"])
def test_a_damaged_cost_names_its_file_and_what_to_do(tmp_path, content):
    (tmp_path / COST_FILE).write_text(content)
    with pytest.raises(DataError) as damaged:
        read_cost(tmp_path, MEASURE)
    assert damaged.value.file == str(tmp_path / COST_FILE)
    assert "measures it again" in damaged.value.remedy


def test_a_cost_is_of_a_model_whose_weights_arguments_and_device_are_the_same():
    stored = json.loads(json.dumps({"model": {**MODEL, "fingerprint": "f", "source": "other code"}}))
    assert is_cost_of(stored, MODEL)
    assert is_cost_of(stored, {**MODEL, "args": {**MODEL["args"], "weights": "elsewhere/a.pth"}})
    for change in (
        {"name": "simpleclick"},
        {"weights": {"a.pth": "2e"}},
        {"device": "cpu"},
        {"args": {**MODEL["args"], "zoom": False}},
    ):
        assert not is_cost_of(stored, MODEL | change)
    assert not is_cost_of({"model": {}}, MODEL)
