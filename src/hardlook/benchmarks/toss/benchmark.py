"""TOSS: one-shot segmentation judged by tiers.

Tier 1 asks which queries are found (easy or hard, salient or not), tier 2 whether the support is looked at, tier 3
whether it works for classes unlike any that were trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.one_shot_pairs.answers import answered_masks
from hardlook.benchmarks.one_shot_pairs.image_sources import sources_of
from hardlook.benchmarks.one_shot_pairs.likeness import SIMILARITY, with_similarity
from hardlook.benchmarks.one_shot_pairs.options import void_reading
from hardlook.benchmarks.one_shot_pairs.pictures import pictures_of
from hardlook.benchmarks.one_shot_pairs.qualities import CREDIT, IOU, pair_credits
from hardlook.benchmarks.one_shot_pairs.reading import read_pair
from hardlook.benchmarks.one_shot_pairs.records import COUNTS, record_of
from hardlook.benchmarks.one_shot_pairs.salience import SALIENT_COUNTS, salient_counts, with_salient
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.benchmarks.toss.captions import pair_caption
from hardlook.benchmarks.toss.meanings import SCORES
from hardlook.benchmarks.toss.options import TossOptions, chosen_readings, mixed_reading
from hardlook.benchmarks.toss.printed_tables import printed_tables
from hardlook.benchmarks.toss.published_rows import PUBLISHED_ROWS
from hardlook.benchmarks.toss.scores import COMPLEXITY, SPURIOUS, score_pairs, tally_pairs
from hardlook.benchmarks.toss.sections import show
from hardlook.benchmarks.toss.units import list_pairs
from hardlook.contract.benchmark import BenchmarkCard, Dial, Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally
from hardlook.data.toss_pairs import UNTOLD

if TYPE_CHECKING:
    import polars as pl

SLICES = (
    Column("tier", "int", "1 query complexity, 2 support cognizance, 3 generalisation, 0 the fixed pairs", "slice"),
    Column("fold", "int", "the fold whose test classes these are; -1 in tier 3", "slice"),
    Column("split", "text", "the query's partition in tier 1, the level in tier 2, else empty", "slice"),
    Column("class", "text", "the class to find", "slice"),
    Column("shots", "int", "how many supports", "slice"),
    Column("mixed", "bool", "query and support are of two classes by a slip of names (tier 3)", "slice"),
)
CARD = BenchmarkCard(
    name="toss",
    version="1",
    title="TOSS: tiered one-shot segmentation",
    summary="One-shot segmentation by tiers: hard queries, supports that mislead, classes never seen.",
    role="one-shot-segmenter",
    default_model="planted-one-shot",
    citation="What Ails One-Shot Image Segmentation: A Data Perspective, NeurIPS 2022 Datasets and Benchmarks.",
    data_licence="pair lists: MIT; images: VOC's, COCO's and FSS-1000's own; the planted world: MIT",
    scores=SCORES,
    qualities=(CREDIT, IOU),
    batch_size=64,
    published=PUBLISHED_ROWS,
    published_tables=printed_tables,
    dials=(
        Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "hca"),
        Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "salience-gap"),
        Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "rejection", moves=False),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "scs"),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "rejection"),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "hca", moves=False),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "salience-gap", moves=False),
    ),
    calibrated={"scenes": 32, "resamples": 0},
    example="hardlook run toss --data pairs=TOSS --data voc=VOC2012 --model prototype --out runs/prototype",
)


class Toss:
    """The benchmark's functions. The shelf holds what was read lately and changes no answer."""

    card = CARD
    schema = RecordSchema((*SLICES, *COUNTS, *SALIENT_COUNTS, SIMILARITY))
    options = TossOptions

    def __init__(self) -> None:
        self._shelf = Shelf()

    def sources(self, options: TossOptions) -> Mapping[str, Path | str]:
        """Pair lists and images, or the planted world; and the models that are asked beside the one under test."""
        sources = dict(sources_of(options))
        if saliency := options.saliency_model():
            sources["saliency model"] = saliency.identity("saliency")
        if encoder := options.encoder_model():
            sources["encoder model"] = encoder.identity("encoder")
        return sources

    def units(self, options: TossOptions) -> Sequence[Unit]:
        """One unit a pair and number of shots."""
        return list_pairs(options)

    def prepare(self, unit: Unit) -> Unit:
        """Read query, truth and supports; ask what is salient (tier 1) and how alike they are (L2 and L3 untold)."""
        pair = read_pair(unit.payload, unit.id, self._shelf)
        if pair.settings.saliency and pair.slices["tier"] == COMPLEXITY:
            pair = with_salient(pair, self._shelf)
        if pair.settings.encoder and pair.slices["split"] == UNTOLD:
            pair = with_similarity(pair, self._shelf)
        return replace(unit, payload=pair)

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Segment the queries together, then count pixels."""
        names = [column.name for column in SLICES]
        masks = answered_masks(units, model)
        return [
            {
                **record_of(unit, mask, names),
                **salient_counts(unit.payload, mask),
                SIMILARITY.name: unit.payload.similarity,
            }
            for unit, mask in zip(units, masks, strict=True)
        ]

    def score(self, records: pl.DataFrame, options: TossOptions) -> Scorecard:
        """All scores, from the counts alone."""
        return score_pairs(CARD, records, options)

    def tallies(self, records: pl.DataFrame, options: TossOptions) -> Sequence[Tally]:
        """Pixels by tier, fold, split, class and shots; then what masks go with, for each number of shots."""
        return tally_pairs(records, options)

    def qualities(self, records: pl.DataFrame, options: TossOptions) -> pl.DataFrame:
        """Credit and IoU of each pair; none for pairs of two classes where the reading drops them."""
        import polars as pl

        return pair_credits(
            records,
            void_ignored=void_reading(options) == "ignored",
            spurious=pl.col("split").is_in(SPURIOUS),
            scored=~pl.col("mixed") if mixed_reading(options) == "ours" else None,
        )

    def caption(self, record: Record) -> str:
        """What was asked, how well it was found, and what the mask went with."""
        return pair_caption(record)

    def readings(self, options: TossOptions) -> tuple[Reading, ...]:
        """The formula of SCS, void pixels, size, mixed pairs."""
        return chosen_readings(options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """Tier by tier, then pairs that show what salience and supports do."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Support, query with its truth, prediction."""
        return pictures_of(unit, record, self._shelf)


TOSS = Toss()
