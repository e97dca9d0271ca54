"""Closed mIoU of a semantic segmenter, by class and by context: the smallest complete benchmark.

Read it top to bottom as the example of how a benchmark is made: a card, a schema, and a few pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.benchmarks.closed_miou.options import ClosedMiouOptions, chosen_readings
from hardlook.benchmarks.closed_miou.scores import score_images, tally_images
from hardlook.benchmarks.closed_miou.sections import show
from hardlook.benchmarks.semantic_images.answers import answered_maps
from hardlook.benchmarks.semantic_images.dataset import list_images, read_unit, sources_of
from hardlook.benchmarks.semantic_images.one_vocabulary import refuse_other_truths
from hardlook.benchmarks.semantic_images.pictures import pictures_of
from hardlook.benchmarks.semantic_images.qualities import caption_of, image_qualities
from hardlook.benchmarks.semantic_images.records import SCHEMA, label_names, record_of
from hardlook.benchmarks.semantic_images.vocabulary import closed, translate
from hardlook.contract.benchmark import BenchmarkCard, Dial, Quality, ScoreMeaning, Unit
from hardlook.contract.records import Record
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally

if TYPE_CHECKING:
    import polars as pl

CARD = BenchmarkCard(
    name="closed-miou",
    version="1",
    title="Closed mIoU, by class and context",
    summary="Semantic segmentation scored with one fixed list of labels: every wrong label counts the same.",
    role="semantic-segmenter",
    default_model="planted-segmenter",
    citation="Everingham et al., The Pascal Visual Object Classes Challenge, IJCV 2010 (the IoU of a class).",
    data_licence="the planted world: MIT; your own data: yours",
    scores=(
        ScoreMeaning("miou", "mIoU", "mean over classes of pixels hit / pixels true or predicted", headline=True),
        ScoreMeaning("pixel-accuracy", "pixel accuracy", "share of pixels with the right label"),
        ScoreMeaning("mean-accuracy", "mean accuracy", "mean over classes of the share of its pixels that is found"),
        ScoreMeaning("fw-iou", "fwIoU", "IoU of each class weighted by its share of the pixels"),
        ScoreMeaning("iou", "IoU", "pixels hit / pixels true or predicted, of one class"),
    ),
    qualities=(Quality("image-miou", "mIoU of the image"),),
    dials=(
        Dial("a stranger's name", "planted-segmenter", lambda v: {"stranger": v}, "miou"),
        Dial("ragged borders", "planted-segmenter", lambda v: {"ragged": v}, "miou"),
        Dial(
            "sibling or stranger",
            "planted-segmenter",
            # The same half of all objects is misnamed at every setting; the dial only chooses by whose name.
            lambda v: {"sibling": 0.5 * v, "stranger": 0.5 * (1 - v)},
            "miou",
            moves=False,
        ),
    ),
    example="hardlook run closed-miou --model planted-segmenter --model-arg stranger=.2 --out runs/first",
)


class ClosedMiou:
    """The benchmark's functions."""

    card = CARD
    schema = SCHEMA
    options = ClosedMiouOptions

    def sources(self, options: ClosedMiouOptions) -> Mapping[str, Path | str]:
        """Folders and files, or the planted world."""
        return sources_of(options)

    def units(self, options: ClosedMiouOptions) -> Sequence[Unit]:
        """One unit an image."""
        return list_images(options)

    def prepare(self, unit: Unit) -> Unit:
        """Read image, truth and stored prediction."""
        return replace(unit, payload=read_unit(unit.payload, unit.id))

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Segment the images together, then count."""
        answers = answered_maps(units, model)
        records = []
        for unit, (answer, spoken) in zip(units, answers, strict=True):
            known = unit.payload.labels
            *table, nothing = closed(known, spoken)
            records.append(record_of(unit, translate(answer, np.array(table, np.int32), nothing), known))
        return records

    def score(self, records: pl.DataFrame, options: ClosedMiouOptions) -> Scorecard:
        """All scores, from the counts alone."""
        return score_images(CARD, records, options)

    def tallies(self, records: pl.DataFrame, options: ClosedMiouOptions) -> Sequence[Tally]:
        """Pixels hit, true and predicted of each class: over all images, and of each context."""
        return tally_images(records, options)

    def in_one_vocabulary(self, runs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
        """The runs as they are: all records are in the truth's labels, which must be the same ones."""
        lists = [label_names(records) for records in runs]
        refuse_other_truths(lists, max(map(len, lists), default=0))
        return runs

    def qualities(self, records: pl.DataFrame, options: ClosedMiouOptions) -> pl.DataFrame:
        """The mIoU of each image by itself."""
        return image_qualities(records)

    def caption(self, record: Record) -> str:
        """The image's mIoU, and its largest confusion."""
        return caption_of(record)

    def readings(self, options: ClosedMiouOptions) -> tuple[Reading, ...]:
        """Which classes the mean runs over."""
        return chosen_readings(options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """Classes, contexts, confusions, images."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Image, truth and prediction."""
        return pictures_of(unit, record)


CLOSED_MIOU = ClosedMiou()
