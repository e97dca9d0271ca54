"""Open AP: a wrong label scored by how wrong it is, for instance segmentation and detection.

"Rethinking Evaluation Metrics of Open-Vocabulary Segmentation", arXiv 2311.03352, 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.open_ap.answers import answered_detections
from hardlook.benchmarks.open_ap.dataset import list_images, read_unit, sources_of
from hardlook.benchmarks.open_ap.meanings import MEANINGS
from hardlook.benchmarks.open_ap.options import OpenApOptions, all_readings
from hardlook.benchmarks.open_ap.pictures import pictures_of
from hardlook.benchmarks.open_ap.qualities import caption_of, judged_images
from hardlook.benchmarks.open_ap.records import SCHEMA, in_one_vocabulary, record_of
from hardlook.benchmarks.open_ap.scores import score_images, tally_images
from hardlook.benchmarks.open_ap.sections import show
from hardlook.benchmarks.open_labels.comparison import with_comparison
from hardlook.benchmarks.open_labels.printed_tables import ap_tables
from hardlook.benchmarks.open_labels.published_ap import PUBLISHED_AP
from hardlook.benchmarks.open_labels.published_datasets import published_slice
from hardlook.contract.benchmark import BenchmarkCard, Dial, Quality, Unit
from hardlook.contract.records import Record
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally

if TYPE_CHECKING:
    import polars as pl

MODEL = "planted-instances"


def _up_to_half(setting: float) -> dict[str, float]:
    # Beyond some seven in ten, what is left to give back shrinks: recall and precision are then both bounded by S.
    return {"sibling": 0.5 * setting}


def _sibling_or_stranger(setting: float) -> dict[str, float]:
    # The same half of all objects is misnamed at every setting; the dial only chooses by whose name.
    return {"sibling": 0.5 * setting, "stranger": 0.5 * (1 - setting)}


CARD = BenchmarkCard(
    name="open-ap",
    version="1",
    title="Open AP",
    summary="Instances or boxes where a similar label is partly right, beside COCO's AP and AP-dagger.",
    role="instance-segmenter",
    default_model=MODEL,
    citation="Rethinking Evaluation Metrics of Open-Vocabulary Segmentation, arXiv 2311.03352 (2023).",
    data_licence="the planted world: MIT; your own data: yours",
    scores=MEANINGS,
    qualities=(
        Quality("image-open-ap50", "open AP50 of the image, all labels in one ranking"),
        Quality("image-ap50", "AP50 of the image, all labels in one ranking, right labels only"),
    ),
    published=PUBLISHED_AP,
    published_tables=ap_tables,
    dials=(
        Dial("a sibling's name, up to half", MODEL, _up_to_half, "open-gain"),
        Dial("missed objects", MODEL, lambda v: {"missed": v}, "open-gain", moves=False),
        Dial("ragged borders", MODEL, lambda v: {"ragged": v}, "open-gain", moves=False),
        Dial("a stranger's name", MODEL, lambda v: {"stranger": v}, "ap"),
        Dial("sibling or stranger", MODEL, _sibling_or_stranger, "ap", moves=False),
        Dial("a stranger's name", MODEL, lambda v: {"stranger": v}, "open-ap"),
        Dial("sibling or stranger", MODEL, _sibling_or_stranger, "open-ap"),
    ),
    example="hardlook run open-ap --gt instances.json --pred results.json --labels coco80 --out runs/open-ap",
)


class OpenAp:
    """The benchmark's functions."""

    card = CARD
    schema = SCHEMA
    options = OpenApOptions

    def sources(self, options: OpenApOptions) -> Mapping[str, Path | str]:
        """Files and folders, or the planted world."""
        return sources_of(options)

    def units(self, options: OpenApOptions) -> Sequence[Unit]:
        """One unit an image."""
        return list_images(options)

    def prepare(self, unit: Unit) -> Unit:
        """Read the image, where a model is to see it."""
        return replace(unit, payload=read_unit(unit.payload, unit.id, pixels=unit.payload.stored is None))

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Find objects in the images together, then measure overlaps, in the words of truth and model together."""
        answers = answered_detections(units, model)
        return [record_of(unit, found, spoken) for unit, (found, spoken) in zip(units, answers, strict=True)]

    def score(self, records: pl.DataFrame, options: OpenApOptions) -> Scorecard:
        """All scores, from the overlaps and the similarity."""
        return with_comparison(score_images(CARD, records, options), options)

    def tallies(self, records: pl.DataFrame, options: OpenApOptions) -> Sequence[Tally]:
        """The matches of detections and objects: over all images, and of each context."""
        return tally_images(records, options)

    def in_one_vocabulary(self, runs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
        """The records of several runs in the words of the truth and of all their models."""
        return in_one_vocabulary(runs)

    def qualities(self, records: pl.DataFrame, options: OpenApOptions) -> pl.DataFrame:
        """How well the objects of each image were found and ranked, by similar names and by right ones."""
        return judged_images(records, options)

    def caption(self, record: Record) -> str:
        """How many objects were found and named, and the most frequent confusion."""
        return caption_of(record)

    def readings(self, options: OpenApOptions) -> tuple[Reading, ...]:
        """How matches are read, which senses and which measure."""
        return all_readings(options)

    def published_slice(self, scorecard: Scorecard, options: OpenApOptions) -> Mapping[str, str]:
        """The paper's dataset whose labels these are, and what overlaps."""
        where = published_slice(options.labels, options)
        return {**where, "iou": options.iou} if where else where

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """What similarity gives back, and where."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Image, objects and detections."""
        return pictures_of(unit, record)


OPEN_AP = OpenAp()
