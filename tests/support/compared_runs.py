"""Runs in memory for tests of comparisons: records of planted models as if they had been read from a folder."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hardlook.harness.benchmark import BenchmarkCard, Quality, ScoreMeaning
from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.records import Column, RecordSchema
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.scoring import ScoredRun
from hardlook.harness.scorecard import Reading, Score, Scorecard
from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.tally import Entry, SumTally

SCHEMA = RecordSchema((Column("group", "text", "which part", "slice"), Column("hit", "float", "how good")))


class HitOptions(BenchmarkOptions):
    resamples: int = option(200, "Resamples.", changes="scores")
    level: float = option(0.95, "Level.", changes="scores")
    strict: bool = option(False, "Something that changes scores.", changes="scores")


class Hits:
    """The mean of `hit` over all units and in each group: the simplest benchmark that can be compared."""

    card = BenchmarkCard(
        "hits",
        "1",
        "Hits",
        "Mean of hits.",
        "none",
        scores=(
            ScoreMeaning("rate", "hit rate", "mean of hits", headline=True),
            ScoreMeaning("misses", "miss rate", "mean of misses", higher_is_better=False),
        ),
        qualities=(Quality("hit", "hit"),),
    )
    options = HitOptions
    schema = SCHEMA
    setup = merge_vocabularies = published_slice = None

    def readings(self, options):
        return (Reading("rule", options.reading.get("rule", "plain"), "how it counts", ("plain", "odd"), "plain"),)

    def tallies(self, records, options):
        parts = [({}, records)]
        for group in sorted(set(records["group"])):
            parts.append(({"group": group}, records.filter(records["group"] == group)))
        return [self._tally(rows["hit"].to_numpy(), where) for where, rows in parts]

    def _tally(self, hits, where):
        sums = np.stack([hits, np.ones_like(hits)], axis=1)

        def both(totals):
            return np.stack([ratio(totals), 1 - ratio(totals)], axis=-1)

        entries = (Entry("rate", len(hits), where), Entry("misses", len(hits), where))
        return SumTally(entries, sums, both, ("hits", *where.values()), "image")

    def qualities(self, records, options):
        return records.select("unit", "hit")

    def caption(self, record):
        return f"hit {record['hit']:.1f}"

    def list_units(self, options):
        return []


HITS = Hits()


def parts_of(units, **more):
    return {"units": f"{sorted(units)}", "data images": "one", **more}


def hits_run(hits, name="ant", *, groups=None, units=None, options=None, parts=None, benchmark=HITS):
    """A run of the benchmark above with these values."""
    units = units if units is not None else [f"unit-{place:03}" for place in range(len(hits))]
    groups = groups if groups is not None else ["all"] * len(hits)
    rows = [
        {"unit": unit, "group": group, "hit": float(hit)} for unit, group, hit in zip(units, groups, hits, strict=True)
    ]
    manifest = {
        "model": {"name": name, "args": {}},
        "options": {},
        "units": len(rows),
        "answers": {"fingerprint": name, "parts": parts if parts is not None else parts_of(units)},
    }
    card = Scorecard("hits", "1", name, (Score("rate", float(np.mean(hits)), len(rows)),))
    records = SCHEMA.frame(rows).sort("unit")
    folder = RunFolder(Path("runs") / name)
    return ScoredRun(folder, manifest, benchmark, options or HitOptions(), records, records.head(0), card)


def planted_run(rehearsal: InMemoryRun, records, name):
    """A run of a planted model, from the records of a rehearsal."""
    benchmark, options = rehearsal.benchmark, rehearsal.options
    manifest = {
        "model": {"name": name, "args": {}},
        "options": options.model_dump(mode="json"),
        "units": len(records),
        "answers": {"fingerprint": name, "parts": parts_of(records["unit"].to_list())},
    }
    card = Scorecard(benchmark.card.name, benchmark.card.version, name, ())
    return ScoredRun(RunFolder(Path("runs") / name), manifest, benchmark, options, records, records.head(0), card)


def with_parts(run, **more):
    """The run with other parts in its manifest."""
    answers = {**run.manifest["answers"], "parts": {**run.manifest["answers"]["parts"], **more}}
    return replace(run, manifest={**run.manifest, "answers": answers})
