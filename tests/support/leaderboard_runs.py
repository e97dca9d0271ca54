"""Run folders that hold what a leaderboard reads, and nothing else."""

import functools
import json

from hardlook.harness.registry import find_benchmark
from hardlook.harness.scorecard import Reading, Score, Scorecard, UnitCounts
from hardlook.harness.stats.intervals import Interval

found = functools.cache(find_benchmark)

DAY = "2030-01-02T03:04:05+00:00"


def score(name, value, n=20, comparable="", half=0.01, **where):
    interval = Interval(value - half, value + half, 0.95, "percentile", n, "image") if half else None
    return Score(name, value, n, interval, where, comparable=comparable)


def write_run(
    folder,
    scores,
    *,
    benchmark="closed-miou",
    model="net",
    args=None,
    units="abc",
    created=DAY,
    readings=None,
    options=None,
    parts=None,
    counts=(20, 20, 0),
    **changes,
):
    """A finished run; `changes` replace keys of run.json."""
    card = found(benchmark).card
    whole = found(benchmark).options().model_dump(mode="json")
    manifest = {
        "schema": "hardlook.run/1",
        "benchmark": {"name": benchmark, "version": card.version},
        "model": {"name": model, "role": card.role, "args": args or {}} if model else None,
        "options": {**whole, **(options or {})},
        "seed": 0,
        "units": counts[0],
        "batch_size": 8,
        "answers": {"fingerprint": "f", "parts": {"units": units, "data planted world": "w", **(parts or {})}},
        "created": created,
        **changes,
    }
    told = tuple(Reading(name, value, "") for name, value in (readings or {}).items())
    scorecard = Scorecard(
        benchmark, card.version, model or "stored predictions", tuple(scores), told, (), UnitCounts(*counts)
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(manifest))
    (folder / "scores.json").write_text(scorecard.to_json())
    return folder
