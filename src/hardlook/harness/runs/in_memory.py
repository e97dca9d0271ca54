"""Run a benchmark in memory, without a run folder: for calibration, notebooks and tests of benchmarks.

>>> run = InMemoryRun("closed-miou", {"scenes": 2, "resamples": 0})
>>> run.score("planted-segmenter", {"stranger": 1.0}).get("miou").value < 1
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hardlook.errors import RunError
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.batches import make_batches
from hardlook.harness.runs.evaluation import PreparedBatch, evaluate_prepared, prepare_batch
from hardlook.harness.runs.plan import list_units
from hardlook.harness.scorecard import Scorecard, UnitCounts, merge_readings
from hardlook.models.registry import build

if TYPE_CHECKING:
    import polars as pl


class InMemoryRun:
    """Units whose files are read once, then evaluated with any number of models."""

    def __init__(self, benchmark: str, given: Mapping[str, Any] | None = None) -> None:
        self.benchmark = find_benchmark(benchmark)
        self.options = parse_options(self.benchmark.options, dict(given or {}), self.benchmark.card.name)
        units = list_units(self.benchmark, self.options)
        self.left_out = tuple(getattr(units, "left_out", ()))
        card = self.benchmark.card
        batches = make_batches(units, card.batch_size, whole_groups=card.whole_groups)
        self.prepared: list[PreparedBatch] = [prepare_batch(self.benchmark, batch) for batch in batches]

    def records(self, model: str, args: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """Records of all units; a failed unit is an error here."""
        built = build(model, role=self.benchmark.card.role, args=dict(args or {}))
        rows: list[Any] = []
        for batch in self.prepared:
            outcome = evaluate_prepared(self.benchmark, batch, built)
            if outcome.failures:
                raise RunError(outcome.failures[0].error, unit=outcome.failures[0].unit)
            rows.extend(outcome.records)
        return self.benchmark.schema.frame(rows).select(self.benchmark.schema.light).sort("unit")

    def score(self, model: str, args: Mapping[str, Any] | None = None) -> Scorecard:
        """The scorecard of a model."""
        records = self.records(model, args)
        scorecard = self.benchmark.score(records, self.options)
        return replace(
            scorecard,
            model=model,
            readings=merge_readings(self.benchmark.readings(self.options), scorecard.readings),
            left_out=(*self.left_out, *scorecard.left_out),
            units=UnitCounts(len(records), len(records), 0),
        )
