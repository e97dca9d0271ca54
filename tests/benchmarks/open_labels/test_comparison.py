from pathlib import Path

import pytest

from hardlook.benchmarks import find_benchmark
from hardlook.benchmarks.open_labels.comparison import comparable
from hardlook.benchmarks.open_labels.options import OpenLabelOptions
from hardlook.runs.in_memory import Rehearsal

DATA = {"gt": Path("gt"), "pred": Path("pred")}


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, "Not comparable with the paper: these are scenes"),
        (DATA, "Not comparable with the paper's tables"),
        ({**DATA, "variant": "published", "measure": "wup"}, "Not comparable with the paper's tables"),
        ({**DATA, "variant": "published", "similarity": Path("S.csv")}, "Not comparable with the paper's tables"),
        ({**DATA, "variant": "published"}, "Comparable with the paper's tables"),
    ],
)
def test_only_the_papers_own_senses_and_measure_compare(options, start):
    assert comparable(OpenLabelOptions(**options)).startswith(start)


@pytest.mark.parametrize("name", ["open-miou", "open-ap", "open-pq"])
def test_every_headline_score_says_so(name):
    rehearsal = Rehearsal(name, {"scenes": 4, "resamples": 0})
    card = rehearsal.score(find_benchmark(name).card.default_model)
    assert card.headline
    assert all("planted world" in score.comparable for score in card.headline)
