import json
import math

from compared_runs import hits_run

from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.document import SCHEMA, build_document
from hardlook.report.compare.units import compute_unit_qualities, count_units


def test_the_document_holds_everything_and_is_plain_json():
    runs = [hits_run([1, 0, 1], "ant"), hits_run([1, 1, 0], "bee")]
    found = compare_runs(runs, swaps=99, resamples=20, seed=3)
    qualities = compute_unit_qualities(runs, found.models, found.units.ids, 3)
    document = build_document(found, runs, [count_units(qualities, "ant", "bee")])
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
