"""Open mIoU: a wrong label scored by how wrong it is.

Zhou et al., "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation", 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.benchmarks.open_labels.comparison import with_comparison
from hardlook.benchmarks.open_labels.matrix import label_similarity
from hardlook.benchmarks.open_labels.printed_tables import miou_tables
from hardlook.benchmarks.open_labels.published import PUBLISHED_MIOU
from hardlook.benchmarks.open_labels.published_datasets import published_slice
from hardlook.benchmarks.open_miou.options import OpenMiouOptions, all_readings
from hardlook.benchmarks.open_miou.scores import judged_images, score_images, tally_images
from hardlook.benchmarks.open_miou.sections import show
from hardlook.benchmarks.semantic_images.answers import answered_maps
from hardlook.benchmarks.semantic_images.dataset import list_images, read_unit, sources_of
from hardlook.benchmarks.semantic_images.pictures import pictures_of
from hardlook.benchmarks.semantic_images.qualities import caption_of
from hardlook.benchmarks.semantic_images.records import SCHEMA, in_one_vocabulary, record_of
from hardlook.benchmarks.semantic_images.vocabulary import together, translate
from hardlook.contract.benchmark import BenchmarkCard, Dial, Quality, ScoreMeaning, Unit
from hardlook.contract.records import Record
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally
from hardlook.labels.load import load_label_set

if TYPE_CHECKING:
    import polars as pl


def _sibling_or_stranger(setting: float) -> dict[str, float]:
    # The same half of all objects is misnamed at every setting; the dial only chooses by whose name.
    return {"sibling": 0.5 * setting, "stranger": 0.5 * (1 - setting)}


CARD = BenchmarkCard(
    name="open-miou",
    version="1",
    title="Open mIoU",
    summary="Semantic segmentation where a similar label is partly right, by WordNet or embeddings.",
    role="semantic-segmenter",
    default_model="planted-segmenter",
    citation="Rethinking Evaluation Metrics of Open-Vocabulary Segmentation, arXiv 2311.03352 (2023).",
    data_licence="the planted world: MIT; your own data: yours",
    scores=(
        ScoreMeaning(
            "open-miou", "open mIoU", "mean over classes of soft IoU: similar labels count in part", headline=True
        ),
        ScoreMeaning(
            "miou", "vanilla mIoU", "mean over classes of IoU where only the right label counts", headline=True
        ),
        ScoreMeaning(
            "open-gain", "given back", "open mIoU minus vanilla mIoU, on the same images", headline=True, directed=False
        ),
        ScoreMeaning("open-pixel-accuracy", "open pixel accuracy", "pixels with the right label, similar ones in part"),
        ScoreMeaning("pixel-accuracy", "pixel accuracy", "share of pixels with the right label"),
        ScoreMeaning("open-mean-accuracy", "open mean accuracy", "mean over classes of the soft share that is found"),
        ScoreMeaning("mean-accuracy", "mean accuracy", "mean over classes of the share of its pixels that is found"),
        ScoreMeaning("open-fw-iou", "open fwIoU", "soft IoU of each class weighted by its share of the pixels"),
        ScoreMeaning("fw-iou", "fwIoU", "IoU of each class weighted by its share of the pixels"),
        ScoreMeaning("open-iou", "open IoU", "soft IoU of one class"),
        ScoreMeaning("iou", "IoU", "IoU of one class"),
        ScoreMeaning(
            "confused-pixels", "confused pixels", "pixels of one label called another", higher_is_better=False
        ),
        ScoreMeaning(
            "unforgiven-pixels",
            "unforgiven pixels",
            "the part that similarity does not forgive",
            higher_is_better=False,
        ),
    ),
    qualities=(
        Quality("image-open-miou", "open mIoU of the image"),
        Quality("image-miou", "vanilla mIoU of the image"),
        Quality("image-gain", "what similarity gives back on the image"),
    ),
    published=PUBLISHED_MIOU,
    published_tables=miou_tables,
    dials=(
        Dial("a sibling's name", "planted-segmenter", lambda v: {"sibling": v}, "open-gain"),
        Dial("ragged borders", "planted-segmenter", lambda v: {"ragged": v}, "open-gain", moves=False),
        Dial("a stranger's name", "planted-segmenter", lambda v: {"stranger": v}, "miou"),
        Dial("sibling or stranger", "planted-segmenter", _sibling_or_stranger, "miou", moves=False),
        Dial("a stranger's name", "planted-segmenter", lambda v: {"stranger": v}, "open-miou"),
        Dial("sibling or stranger", "planted-segmenter", _sibling_or_stranger, "open-miou"),
    ),
    example="hardlook run open-miou --model planted-segmenter --model-arg sibling=.3 --out runs/open",
)


class OpenMiou:
    """The benchmark's functions."""

    card = CARD
    schema = SCHEMA
    options = OpenMiouOptions

    def sources(self, options: OpenMiouOptions) -> Mapping[str, Path | str]:
        """Folders and files, or the planted world."""
        found = dict(sources_of(options))
        if options.pred_labels and Path(options.pred_labels).is_file():
            found["pred_labels"] = Path(options.pred_labels)
        return found

    def units(self, options: OpenMiouOptions) -> Sequence[Unit]:
        """One unit an image."""
        spoken = load_label_set(options.pred_labels) if options.pred_labels else None
        units = list_images(options, spoken)
        # Words without a sense are refused before the work, not after it.
        names, _ = together(units[0].payload.labels, spoken.names if spoken else ()) if units else ((), None)
        label_similarity(names, options.labels, options)
        return units

    def prepare(self, unit: Unit) -> Unit:
        """Read image, truth and stored prediction."""
        return replace(unit, payload=read_unit(unit.payload, unit.id))

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Segment the images together, then count, in the words of truth and model together."""
        records = []
        for unit, (answer, spoken) in zip(units, answered_maps(units, model), strict=True):
            names, table = together(unit.payload.labels, spoken)
            records.append(record_of(unit, translate(answer, table), names))
        return records

    def score(self, records: pl.DataFrame, options: OpenMiouOptions) -> Scorecard:
        """All scores, from the counts and the similarity."""
        return with_comparison(score_images(CARD, records, options), options)

    def tallies(self, records: pl.DataFrame, options: OpenMiouOptions) -> Sequence[Tally]:
        """Pixels of each class, hard and soft: over all images, and of each context."""
        return tally_images(records, options)

    def in_one_vocabulary(self, runs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
        """The records of several runs in the words of the truth and of all their models."""
        return in_one_vocabulary(runs)

    def qualities(self, records: pl.DataFrame, options: OpenMiouOptions) -> pl.DataFrame:
        """The open and the vanilla mIoU of each image by itself, and how far they are apart."""
        return judged_images(records, options)

    def caption(self, record: Record) -> str:
        """The share of right pixels, and the image's largest confusion."""
        return caption_of(record)

    def readings(self, options: OpenMiouOptions) -> tuple[Reading, ...]:
        """Which classes the mean runs over, which senses and which measure."""
        return all_readings(options)

    def published_slice(self, scorecard: Scorecard, options: OpenMiouOptions) -> Mapping[str, str]:
        """The paper's dataset whose labels these are."""
        return published_slice(options.labels, options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """What similarity gives back, and where."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Image, truth and prediction."""
        return pictures_of(unit, record)


OPEN_MIOU = OpenMiou()
