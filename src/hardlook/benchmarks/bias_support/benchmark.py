"""`hardlook bias support`: the same queries under right, wrong, unmasked and empty supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.bias_support.conditions import CONDITIONS, CORRECT, SPURIOUS, condition_words
from hardlook.benchmarks.bias_support.options import BiasSupportOptions
from hardlook.benchmarks.bias_support.scores import score_conditions, tally_conditions
from hardlook.benchmarks.bias_support.sections import show
from hardlook.benchmarks.bias_support.units import list_conditions
from hardlook.benchmarks.one_shot_pairs.answers import answered_masks
from hardlook.benchmarks.one_shot_pairs.captions import caption_of
from hardlook.benchmarks.one_shot_pairs.image_sources import sources_of
from hardlook.benchmarks.one_shot_pairs.options import shared_readings, void_reading
from hardlook.benchmarks.one_shot_pairs.pictures import pictures_of
from hardlook.benchmarks.one_shot_pairs.qualities import CREDIT, IOU, pair_credits
from hardlook.benchmarks.one_shot_pairs.reading import read_pair
from hardlook.benchmarks.one_shot_pairs.records import COUNTS, record_of
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.benchmarks.toss.printed_tables import support_table
from hardlook.benchmarks.toss.published_study_rows import SUPPORT_ROWS
from hardlook.contract.benchmark import BenchmarkCard, Dial, ScoreMeaning, Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally

if TYPE_CHECKING:
    import polars as pl

SLICES = (
    Column("condition", "text", "what the support shows", "slice"),
    Column("fold", "int", "the fold of the class", "slice"),
    Column("class", "text", "the class to find", "slice"),
)
# With these supports there is nothing to go by, and finding the object all the same is the fault.
MISLED = tuple(("support", one.name) for one in SPURIOUS)
CARD = BenchmarkCard(
    name="bias-support",
    version="1",
    title="Support ablations",
    summary="What a one-shot model still finds when its support shows another class, no mask, or nothing.",
    role="one-shot-segmenter",
    default_model="planted-one-shot",
    citation="What Ails One-Shot Image Segmentation: A Data Perspective, Table 2A.",
    scores=(
        *(
            ScoreMeaning(one.name, one.name, f"mIoU with {one.words}", one is CORRECT, headline=True)
            for one in CONDITIONS
        ),
        ScoreMeaning("drop", "drop", "mIoU with the right support minus mIoU with this one"),
        ScoreMeaning("left", "left", "share of the right support's mIoU that is left with this one", False),
        ScoreMeaning("miou", "mIoU", "mean over classes of summed intersections / summed unions", turned=MISLED),
        ScoreMeaning("pair-iou", "pair IoU", "mean IoU over single pairs", turned=MISLED),
        ScoreMeaning("iou", "IoU", "summed intersections / summed unions of one class", turned=MISLED),
    ),
    qualities=(CREDIT, IOU),
    batch_size=64,
    published=SUPPORT_ROWS,
    published_tables=lambda: (support_table(),),
    dials=(Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "no-mask"),),
    example="hardlook bias support --data voc=VOC2012 --model prototype --out bias/support",
)


class BiasSupport:
    """The study's functions."""

    card = CARD
    schema = RecordSchema((*SLICES, *COUNTS))
    options = BiasSupportOptions

    def __init__(self) -> None:
        self._shelf = Shelf()

    def sources(self, options: BiasSupportOptions) -> Mapping[str, Path | str]:
        """Pair lists and images, or the planted world."""
        return sources_of(options)

    def units(self, options: BiasSupportOptions) -> Sequence[Unit]:
        """Five units a pair."""
        return list_conditions(options)

    def prepare(self, unit: Unit) -> Unit:
        """Read query, truth and support."""
        return replace(unit, payload=read_pair(unit.payload, unit.id, self._shelf))

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Segment the queries together, then count pixels."""
        names = [column.name for column in SLICES]
        masks = answered_masks(units, model)
        return [record_of(unit, mask, names) for unit, mask in zip(units, masks, strict=True)]

    def score(self, records: pl.DataFrame, options: BiasSupportOptions) -> Scorecard:
        """All scores, from the counts alone."""
        return score_conditions(CARD, records, options)

    def tallies(self, records: pl.DataFrame, options: BiasSupportOptions) -> Sequence[Tally]:
        """Pixels by condition, fold and class."""
        return tally_conditions(records, options)

    def qualities(self, records: pl.DataFrame, options: BiasSupportOptions) -> pl.DataFrame:
        """Credit and IoU of each pair."""
        import polars as pl

        void_ignored = void_reading(options) == "ignored"
        return pair_credits(records, void_ignored=void_ignored, spurious=pl.col("condition") != CORRECT.name)

    def caption(self, record: Record) -> str:
        """What the support showed, and how well the query's object was found."""
        condition = str(record["condition"])
        return caption_of(record, f"support: {condition_words(condition)}", spurious=condition != CORRECT.name)

    def readings(self, options: BiasSupportOptions) -> tuple[Reading, ...]:
        """Void pixels and size."""
        return shared_readings(options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """Conditions, classes, pairs."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Support, query with its truth, prediction."""
        return pictures_of(unit, record, self._shelf)


BIAS_SUPPORT = BiasSupport()
