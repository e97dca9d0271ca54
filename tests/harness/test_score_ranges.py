"""Every interval of every benchmark lies inside the range of its score, with every method that has ranges."""

import math

import pytest

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.stats.jackknife import UNBOUNDED

RUNS = {
    "closed-miou": ({"scenes": 12}, "planted-segmenter", {"stranger": 0.9}),
    "open-miou": ({"scenes": 12}, "planted-segmenter", {"sibling": 0.5}),
    "open-pq": ({"scenes": 12}, "planted-panoptic", {"sibling": 0.5}),
    "open-ap": ({"scenes": 12}, "planted-instances", {"sibling": 0.5}),
    "toss": ({"scenes": 32}, "planted-one-shot", {"saliency": 0.9}),
    "metacoco": (
        {"scenes": 480, "tasks": 12, "repeats": 1, "queries": 3, "modes": "iid,ood", "ways": "3", "shots": "1"},
        "planted-learner",
        {"context": 1.0},
    ),
    "rclicks": ({"scenes": 8, "rounds": 3}, "disc", {"fragility": 0.9}),
}


@pytest.mark.parametrize("name", RUNS)
def test_intervals_lie_inside_the_range_of_their_score(name):
    options, model, args = RUNS[name]
    run = InMemoryRun(name, {**options, "resamples": 40})
    records = run.records(model, args)
    tallies = run.benchmark.tallies(records, run.options)
    ranges = {(one.name, *sorted(one.slice.items())): one.range for tally in tallies for one in tally.entries}
    assert UNBOUNDED not in ranges.values()
    checked = 0
    for score in run.benchmark.score(records, run.options).scores:
        low, high = ranges.get((score.name, *sorted(score.slice.items())), UNBOUNDED)
        for interval in filter(None, (score.interval, score.wider)):
            assert low - 1e-12 <= interval.low <= score.value <= interval.high <= high + 1e-12, score
            checked += math.isfinite(low)
    assert checked > 3
