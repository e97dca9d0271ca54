"""Whether the data's categories have senses, asked before the work and not after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hardlook.benchmarks.open_ap.options import OpenApOptions
from hardlook.benchmarks.open_labels.matrix import label_similarity
from hardlook.errors import DataError, OptionError
from hardlook.labels.label_set import LabelSet
from hardlook.labels.load import load_label_set
from hardlook.labels.measures import find_measure

SHOWN = 12


def check_words(names: Sequence[str], options: OpenApOptions, file: Path | None) -> None:
    """Refuse categories that `--labels` does not know, or that have no sense for a measure on WordNet."""
    refuse_strangers(names, options, file)
    if options.similarity is not None or find_measure(options.measure).kind != "wordnet":
        return
    spoken = load_label_set(options.pred_labels).names if options.pred_labels else ()
    try:
        label_similarity([*names, *(word for word in spoken if word not in names)], options.labels, options)
    except DataError as error:
        if options.labels is not None:
            raise
        remedy = (
            "name their label set with --labels (hardlook labels list; coco80 for COCO), choose senses with "
            "`hardlook labels map`, or give --unknown zero"
        )
        raise DataError(error.what, file=file, remedy=remedy) from error


def refuse_strangers(names: Sequence[str], options: OpenApOptions, file: Path | None = None) -> None:
    """A list of the categories that the label set of `--labels` does not have."""
    if options.labels is None:
        return
    known = load_label_set(options.labels, options.variant)
    strange = [name for name in names if not _has(known, name)]
    if strange:
        more = f" and {len(strange) - SHOWN} more" if len(strange) > SHOWN else ""
        raise DataError(
            f"{len(strange)} of {len(names)} categories are no labels of {options.labels}: "
            f"{', '.join(strange[:SHOWN])}{more}",
            file=file,
            remedy="choose the label set of this data, or a file of your own with its names and senses",
        )


def _has(labels: LabelSet, name: str) -> bool:
    try:
        labels.find(name)
    except OptionError:
        return False
    return True
