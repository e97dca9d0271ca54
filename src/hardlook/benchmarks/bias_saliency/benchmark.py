"""`hardlook bias saliency`: whether a one-shot model follows the eye, and whether blurring what is salient helps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.bias_saliency.options import BiasSaliencyOptions
from hardlook.benchmarks.bias_saliency.scores import score_both, tally_both
from hardlook.benchmarks.bias_saliency.sections import show
from hardlook.benchmarks.bias_saliency.suppression import SUPPRESSED, with_salience
from hardlook.benchmarks.bias_saliency.units import list_both
from hardlook.benchmarks.one_shot_pairs.answers import answered_masks
from hardlook.benchmarks.one_shot_pairs.captions import caption_of
from hardlook.benchmarks.one_shot_pairs.following import MEANINGS as FOLLOWING
from hardlook.benchmarks.one_shot_pairs.image_sources import sources_of
from hardlook.benchmarks.one_shot_pairs.options import shared_readings, void_reading
from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair
from hardlook.benchmarks.one_shot_pairs.qualities import IOU, pair_ious
from hardlook.benchmarks.one_shot_pairs.reading import read_pair
from hardlook.benchmarks.one_shot_pairs.records import COUNTS, decode_prediction, record_of
from hardlook.benchmarks.one_shot_pairs.salience import SALIENT_COUNTS, salient_counts
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.benchmarks.toss.printed_tables import salience_table, suppression_table
from hardlook.benchmarks.toss.published_study_rows import SALIENCY_ROWS
from hardlook.contract.benchmark import BenchmarkCard, Dial, ScoreMeaning, Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally

if TYPE_CHECKING:
    import polars as pl

SLICES = (
    Column("condition", "text", "plain, or suppressed: the query's salient region is blurred", "slice"),
    Column("fold", "int", "the fold of the class", "slice"),
    Column("class", "text", "the class to find", "slice"),
    Column("pair", "text", "the pair that both conditions share"),
    Column("salience", "float", "IoU of the target and the saliency mask of the query as it is"),
)
CARD = BenchmarkCard(
    name="bias-saliency",
    version="1",
    title="Saliency bias and its suppression",
    summary="Salient against other targets, and whether blurring what is salient (SSSI) finds the others.",
    role="one-shot-segmenter",
    default_model="planted-one-shot",
    citation="What Ails One-Shot Image Segmentation: A Data Perspective, Tables 2B and 3.",
    scores=(
        ScoreMeaning("base", "base", "mIoU of all pairs as they are", headline=True),
        ScoreMeaning("sssi", "with SSSI", "mIoU when queries with a non-salient target are blurred", headline=True),
        ScoreMeaning("gain", "gain", "mIoU with SSSI minus mIoU without", headline=True, directed=False),
        ScoreMeaning("salient", "salient", "mIoU of salient targets"),
        ScoreMeaning("non-salient", "non-salient", "mIoU of the other targets"),
        ScoreMeaning(
            "salience-gap",
            "salience gap",
            "mIoU of salient minus mIoU of other targets; near 0 is even",
            directed=False,
        ),
        *FOLLOWING,
        ScoreMeaning("non-salient-sssi", "non-salient, blurred", "mIoU of the other targets in blurred queries"),
        ScoreMeaning(
            "non-salient-gain",
            "gain of the others",
            "what blurring adds to the mIoU of the other targets",
            directed=False,
        ),
        ScoreMeaning("salient-suppressed", "salient, blurred", "mIoU of salient targets in blurred queries"),
        ScoreMeaning("suppressed-all", "all blurred", "mIoU when every query is blurred"),
    ),
    qualities=(IOU,),
    batch_size=64,
    published=SALIENCY_ROWS,
    published_tables=lambda: (salience_table(), suppression_table()),
    dials=(Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "gain"),),
    example="hardlook bias saliency --data voc=VOC2012 --model prototype --saliency u2netp --out bias/saliency",
)


class BiasSaliency:
    """The study's functions."""

    card = CARD
    schema = RecordSchema((*SLICES, *COUNTS, *SALIENT_COUNTS))
    options = BiasSaliencyOptions

    def __init__(self) -> None:
        self._shelf = Shelf()

    def sources(self, options: BiasSaliencyOptions) -> Mapping[str, Path | str]:
        """Images and the saliency model."""
        return {**sources_of(options), "saliency model": options.saliency_model().identity("saliency")}

    def units(self, options: BiasSaliencyOptions) -> Sequence[Unit]:
        """Two units a pair."""
        return list_both(options)

    def prepare(self, unit: Unit) -> Unit:
        """Read the pair, ask what is salient, blur where that is the condition."""
        pair = read_pair(unit.payload, unit.id, self._shelf)
        return replace(unit, payload=self._with_salience(pair))

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Segment the queries together, then count pixels."""
        names = [column.name for column in SLICES]
        masks = answered_masks(units, model)
        return [
            {**record_of(unit, mask, names), **salient_counts(unit.payload, mask)}
            for unit, mask in zip(units, masks, strict=True)
        ]

    def score(self, records: pl.DataFrame, options: BiasSaliencyOptions) -> Scorecard:
        """All scores, from the counts alone."""
        return score_both(CARD, records, options)

    def tallies(self, records: pl.DataFrame, options: BiasSaliencyOptions) -> Sequence[Tally]:
        """Pixels by condition, salience, fold and class; then what masks go with where the target is not salient."""
        return tally_both(records, options)

    def qualities(self, records: pl.DataFrame, options: BiasSaliencyOptions) -> pl.DataFrame:
        """The IoU of each pair under each condition: every support here shows the class."""
        return pair_ious(records, void_ignored=void_reading(options) == "ignored")

    def caption(self, record: Record) -> str:
        """Whether the query was blurred, how salient its target is, and what the mask goes with."""
        seen = "salient region blurred" if record["condition"] == SUPPRESSED else "query as it is"
        return caption_of(record, f"{seen}, target salient by {record['salience']:.2f}")

    def readings(self, options: BiasSaliencyOptions) -> tuple[Reading, ...]:
        """Void pixels and size."""
        return shared_readings(options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """The gap, the remedy, the pairs."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Support, what the model saw with the truth, and its prediction."""
        pair = self._with_salience(read_pair(unit.payload, unit.id, self._shelf))
        assert pair.image is not None and pair.truth is not None
        pictures = [
            Picture("support", pair.support[0].image, mask=pair.support[0].mask),
            Picture("query as seen, and truth", pair.image, mask=pair.truth.mask),
        ]
        if record["prediction"]:
            mask = decode_prediction(record["prediction"], pair.truth.mask.shape)
            pictures.append(Picture("prediction", pair.image, mask=mask))
        return pictures

    def _with_salience(self, pair: OneShotPair) -> OneShotPair:
        return with_salience(pair, float(pair.slices["sigma"]), self._shelf)


BIAS_SALIENCY = BiasSaliency()
