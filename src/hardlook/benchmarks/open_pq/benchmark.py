"""Open PQ: segments with a wrong label scored by how wrong it is.

"Rethinking Evaluation Metrics of Open-Vocabulary Segmentation", 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.open_labels.comparison import with_comparison
from hardlook.benchmarks.open_labels.printed_tables import pq_tables
from hardlook.benchmarks.open_labels.published_datasets import published_slice
from hardlook.benchmarks.open_labels.published_pq import PUBLISHED_PQ
from hardlook.benchmarks.open_pq.answers import answered_sides
from hardlook.benchmarks.open_pq.dataset import list_images, sources_of
from hardlook.benchmarks.open_pq.options import OpenPqOptions, all_readings
from hardlook.benchmarks.open_pq.pictures import pictures_of
from hardlook.benchmarks.open_pq.qualities import caption_of, judged_images
from hardlook.benchmarks.open_pq.records import SCHEMA, in_one_vocabulary, record_of
from hardlook.benchmarks.open_pq.scores import score_images, similarity_of_words, tally_images
from hardlook.benchmarks.open_pq.sections import show
from hardlook.benchmarks.open_pq.unit_files import read_unit
from hardlook.contract.benchmark import BenchmarkCard, Dial, Quality, ScoreMeaning, Unit
from hardlook.contract.records import Record
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally
from hardlook.labels.measures import find_measure

if TYPE_CHECKING:
    import polars as pl

MODEL = "planted-panoptic"


def _sibling_or_stranger(setting: float) -> dict[str, float]:
    # The same half of all objects is misnamed at every setting; the dial only chooses by whose name.
    return {"sibling": 0.5 * setting, "stranger": 0.5 * (1 - setting)}


CARD = BenchmarkCard(
    name="open-pq",
    version="1",
    title="Open PQ",
    summary="Panoptic segmentation where a similar label is partly right, by WordNet or embeddings.",
    role="panoptic-segmenter",
    default_model=MODEL,
    citation="Rethinking Evaluation Metrics of Open-Vocabulary Segmentation, arXiv 2311.03352 (2023).",
    data_licence="the planted world: MIT; your own data: yours",
    scores=(
        ScoreMeaning(
            "open-pq", "open PQ", "mean over classes; a segment with a similar label counts in part", headline=True
        ),
        ScoreMeaning("pq", "vanilla PQ", "mean over classes of IoU where only the right label counts", headline=True),
        ScoreMeaning(
            "open-gain", "given back", "open PQ minus vanilla PQ, on the same images", headline=True, directed=False
        ),
        ScoreMeaning("open-sq", "open SQ", "mean IoU of matched segments, weighted by similarity"),
        ScoreMeaning("sq", "vanilla SQ", "mean IoU of matched segments with the right label"),
        ScoreMeaning("open-rq", "open RQ", "F1 of finding and naming segments, similar names in part"),
        ScoreMeaning("rq", "vanilla RQ", "F1 of finding and naming segments"),
        ScoreMeaning(
            "misnamed-segments",
            "misnamed segments",
            "segments of one label, found and called another",
            higher_is_better=False,
        ),
        ScoreMeaning(
            "unforgiven-segments",
            "unforgiven segments",
            "the part of them that similarity does not forgive",
            higher_is_better=False,
        ),
    ),
    qualities=(
        Quality("image-open-pq", "open PQ of the image"),
        Quality("image-pq", "vanilla PQ of the image"),
    ),
    published=PUBLISHED_PQ,
    published_tables=pq_tables,
    dials=(
        Dial("a sibling's name", MODEL, lambda v: {"sibling": v}, "open-gain"),
        Dial("missed objects", MODEL, lambda v: {"missed": v}, "open-gain", moves=False),
        Dial("ragged borders", MODEL, lambda v: {"ragged": v}, "open-gain", moves=False),
        Dial("a stranger's name", MODEL, lambda v: {"stranger": v}, "pq"),
        Dial("sibling or stranger", MODEL, _sibling_or_stranger, "pq", moves=False),
        Dial("a stranger's name", MODEL, lambda v: {"stranger": v}, "open-pq"),
        Dial("sibling or stranger", MODEL, _sibling_or_stranger, "open-pq"),
    ),
    example="hardlook run open-pq --model planted-panoptic --model-arg sibling=.3 --out runs/open-pq",
)


class OpenPqBenchmark:
    """The benchmark's functions."""

    card = CARD
    schema = SCHEMA
    options = OpenPqOptions

    def sources(self, options: OpenPqOptions) -> Mapping[str, Path | str]:
        """JSON files and folders, or the planted world."""
        return sources_of(options)

    def units(self, options: OpenPqOptions) -> Sequence[Unit]:
        """One unit an image; words without a sense are refused here, before the work, where that costs nothing."""
        units = list_images(options)
        if units and not options.similarity and find_measure(options.measure).kind == "wordnet":
            similarity_of_words(units[0].payload.words, options)
        return units

    def prepare(self, unit: Unit) -> Unit:
        """Read the PNGs, and the image where a model is going to see it."""
        return replace(unit, payload=read_unit(unit.payload, unit.id, picture=unit.payload.results is None))

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Segment the images together, then match segments, whatever their labels."""
        return [record_of(unit, side) for unit, side in zip(units, answered_sides(units, model), strict=True)]

    def score(self, records: pl.DataFrame, options: OpenPqOptions) -> Scorecard:
        """All scores, from the matches and the similarity."""
        return with_comparison(score_images(CARD, records, options), options)

    def tallies(self, records: pl.DataFrame, options: OpenPqOptions) -> Sequence[Tally]:
        """IoU, hits, false and missed segments of each class, hard and soft: over all images, and of each context."""
        return tally_images(records, options)

    def in_one_vocabulary(self, runs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
        """The records of several runs in the words of the truth and of all their models."""
        return in_one_vocabulary(runs)

    def qualities(self, records: pl.DataFrame, options: OpenPqOptions) -> pl.DataFrame:
        """The open and the vanilla PQ of each image by itself."""
        return judged_images(records, options)

    def caption(self, record: Record) -> str:
        """How many segments were found and named, and the most frequent confusion."""
        return caption_of(record)

    def readings(self, options: OpenPqOptions) -> tuple[Reading, ...]:
        """Which crowds excuse, which senses and which measure."""
        return all_readings(options)

    def published_slice(self, scorecard: Scorecard, options: OpenPqOptions) -> Mapping[str, str]:
        """The paper's dataset whose labels these are."""
        return published_slice(options.labels, options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """What similarity gives back, and where."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Image, true and predicted segments."""
        return pictures_of(unit, record)


OPEN_PQ = OpenPqBenchmark()
