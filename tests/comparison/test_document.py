import json
import math

from hardlook.comparison import compare
from hardlook.comparison.differing_units import count_units, unit_qualities
from hardlook.comparison.document import SCHEMA, document_of

from .planted_runs import hits_run


def test_the_document_holds_everything_and_is_plain_json():
    runs = [hits_run([1, 0, 1], "ant"), hits_run([1, 1, 0], "bee")]
    found = compare(runs, swaps=99, resamples=20, seed=3)
    qualities = unit_qualities(runs, found.models, found.units.ids)
    document = document_of(found, runs, [count_units(qualities, "ant", "bee")])
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again == document
    assert (again["schema"], again["seed"], again["swaps"], again["level"]) == (SCHEMA, 3, 99, 0.95)
    assert [model["name"] for model in again["models"]] == ["ant", "bee"]
    assert again["units"]["shared"] == 3 and again["units"]["same"]
    assert len(again["differences"]) == len(found.differences)
    assert again["differences"][0]["verdict"] == "cannot tell"
    # Equal scores: no number of units would tell, which JSON says by null.
    assert math.isinf(found.headline[0].units_needed) and again["differences"][0]["units_needed"] is None
    assert again["standings"]["rate"][0]["sets"] == ["a"]
    assert again["single_units"] == [
        {"first": "ant", "second": "bee", "first_better": 1, "second_better": 1, "equal": 1, "undefined": 0}
    ]
    assert again["families"] == {"headline scores": 1, "other scores": 1, "rate by group": 1, "misses by group": 1}
