"""MetaCoCo: few-shot classification when context goes along with the class, and when it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.metacoco.episodes import episodes_of, query_orders, tasks_of
from hardlook.benchmarks.metacoco.features import get_features_ready
from hardlook.benchmarks.metacoco.images import open_images
from hardlook.benchmarks.metacoco.meanings import SCORES
from hardlook.benchmarks.metacoco.options import MetaCocoOptions, chosen_readings
from hardlook.benchmarks.metacoco.pictures import pictures_of
from hardlook.benchmarks.metacoco.printed_tables import printed_tables
from hardlook.benchmarks.metacoco.published_rows import PUBLISHED_ROWS, published_slice
from hardlook.benchmarks.metacoco.qualities import QUALITIES, caption_of, task_qualities
from hardlook.benchmarks.metacoco.records import SCHEMA, records_of
from hardlook.benchmarks.metacoco.scores import score_tasks, tally_tasks
from hardlook.benchmarks.metacoco.sections import show
from hardlook.benchmarks.metacoco.sources import sources
from hardlook.benchmarks.metacoco.units import list_tasks
from hardlook.contract.benchmark import BenchmarkCard, Dial, Unit
from hardlook.contract.records import Record
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally
from hardlook.errors import ModelError

if TYPE_CHECKING:
    import polars as pl

# Without errors of another kind every error follows context, however few there are, and the share cannot move.
GUESSES = 0.3

CARD = BenchmarkCard(
    name="metacoco",
    version="1",
    title="MetaCoCo: few-shot classification and its contexts",
    summary="Few-shot classification with queries inside and outside of the context that the supports were shown in.",
    role="few-shot-learner",
    default_model="planted-learner",
    citation="MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation, ICLR 2024.",
    data_licence="the planted world: MIT; your own data: yours",
    scores=SCORES,
    qualities=QUALITIES,
    batch_size=64,
    published=PUBLISHED_ROWS,
    published_tables=printed_tables,
    dials=(
        Dial("follows context", "planted-learner", lambda v: {"context": v}, "gap"),
        Dial("follows context", "planted-learner", lambda v: {"context": v, "noise": GUESSES}, "excess-attraction"),
        Dial("follows context", "planted-learner", lambda v: {"context": v, "noise": GUESSES}, "attraction"),
        Dial("follows context", "planted-learner", lambda v: {"context": v}, "iid", moves=False),
        Dial("guesses", "planted-learner", lambda v: {"noise": v}, "iid"),
    ),
    calibrated={"tasks": 20, "resamples": 0},
    example="hardlook run metacoco --data root=PACS --model nearest-centroid --modes iid,ood --out runs/pacs",
)


class MetaCoco:
    """The benchmark's functions."""

    card = CARD
    schema = SCHEMA
    options = MetaCocoOptions

    def sources(self, options: MetaCocoOptions) -> Mapping[str, Path | str]:
        """The images, or the planted world; the rule that splits them; the encoder."""
        return sources(options)

    def units(self, options: MetaCocoOptions) -> Sequence[Unit]:
        """One unit a task."""
        return list_tasks(options)

    def get_ready(self, units: Sequence[Unit], model: Any, show_progress: Any) -> None:
        """Encode every image once, before workers start; refuse an encoder that the learner would not use."""
        get_features_ready(units[0].payload.settings, getattr(model, "accepts", ""), show_progress)

    def prepare(self, unit: Unit) -> Unit:
        """Nothing: tasks are drawn, and features read, a batch at a time."""
        return unit

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Draw the tasks of each mode together, let the learner answer them together."""
        if model is None:
            raise ModelError("MetaCoCo needs a learner", remedy="`hardlook models --role few-shot-learner` lists some")
        alike: dict[tuple[str, int, int], list[Unit]] = {}
        for unit in units:
            alike.setdefault((unit.payload.mode, unit.payload.ways, unit.payload.shots), []).append(unit)
        records: list[Record] = []
        for some in alike.values():
            payloads = [unit.payload for unit in some]
            tasks = tasks_of(payloads)
            order = query_orders(tasks, payloads[0].settings.source.seed)
            answers = model.classify(episodes_of(payloads, tasks, order, model))
            if len(answers) != len(some):
                raise ModelError(f"the learner answered {len(answers)} of {len(some)} episodes", unit=some[0].id)
            records += records_of(some, tasks, order, open_images(payloads[0].settings.source).table, answers)
        return records

    def score(self, records: pl.DataFrame, options: MetaCocoOptions) -> Scorecard:
        """All scores, from the answers alone."""
        return score_tasks(CARD, records, options)

    def tallies(self, records: pl.DataFrame, options: MetaCocoOptions) -> Sequence[Tally]:
        """Accuracies of tasks by mode, right answers by concept and by context, and where wrong ones went."""
        return tally_tasks(records, options)

    def qualities(self, records: pl.DataFrame, options: MetaCocoOptions) -> pl.DataFrame:
        """The accuracy of each task."""
        return task_qualities(records)

    def caption(self, record: Record) -> str:
        """Classes, mode, right answers, and the most frequent error."""
        return caption_of(record)

    def readings(self, options: MetaCocoOptions) -> tuple[Reading, ...]:
        """Which supports blind tasks have."""
        return chosen_readings(options)

    def published_slice(self, scorecard: Scorecard, options: MetaCocoOptions) -> Mapping[str, str]:
        """The ways and shots of the headline scores."""
        return published_slice(scorecard, options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """Modes, contexts, errors, concepts, curves, tasks."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Supports and wrongly answered queries."""
        return pictures_of(unit, record)


METACOCO = MetaCoco()
