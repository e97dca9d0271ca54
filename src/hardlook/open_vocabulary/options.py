"""Options that the benchmarks of this package share: planted scenes, intervals, how labels are compared, presets.

>>> [(preset.name, preset.table, len(preset.parts)) for preset in list_presets("open-miou")]
[('cross-dataset', 'Table 4', 5)]
>>> [preset.name for preset in (*list_presets("open-pq"), *list_presets("open-ap"))]
['panoptic', 'known-unknown', 'measures', 'instances', 'base-novel-masks', 'base-novel-boxes']
>>> dict(list_presets("open-miou")[0].find_part("ade20k-847").options)
{'variant': 'corrected', 'measure': 'path', 'labels': 'ade847'}
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from hardlook.data.presets import get_preset_labels
from hardlook.errors import OptionError
from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.presets import Preset, PresetPart, expand_preset
from hardlook.harness.scorecard import Reading
from hardlook.harness.stats.intervals import Method
from hardlook.similarity.free_words.phrases import SenseChoice
from hardlook.similarity.label_synsets import UnknownPolicy
from hardlook.similarity.measures import find_measure

Variant = Literal["corrected", "published"]
PredWords = Literal["labels", "free"]

VARIANTS = {
    "corrected": "senses reviewed label by label, the paper's slips repaired (docs/label-tables.md)",
    "published": "senses that reproduce the paper's numbers",
}


def list_presets(benchmark: str) -> tuple[Preset, ...]:
    """The presets of a benchmark, from `presets.toml`, in the order of the paper's tables."""
    return tuple(preset for preset in _read_presets() if preset.benchmark == benchmark)


@cache
def _read_presets() -> tuple[Preset, ...]:
    text = files("hardlook.open_vocabulary").joinpath("presets.toml").read_text(encoding="utf-8")
    presets = []
    for row in tomllib.loads(text)["preset"]:
        shared = row.pop("options")
        parts = tuple(
            PresetPart(part["data"], part["dataset"], {**shared, **part["options"]}) for part in row.pop("part")
        )
        presets.append(Preset(parts=parts, **{**row, "published": tuple(row["published"])}))
    return tuple(presets)


class SceneOptions(BenchmarkOptions):
    """Options of all benchmarks of this package: scenes without data, stored predictions, intervals."""

    scenes: int = option(
        96, "How many scenes of the planted world, when no data is given.", changes="units", ge=1, le=1_000_000
    )
    keep_predictions: bool = option(True, "Store predictions, so that the report can show them.", changes="answers")
    resamples: int = option(2000, "Bootstrap resamples behind each interval.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)
    interval: Method = option("jackknife", "Interval: jackknife, percentile or bca.", changes="scores")


class SimilarityOptions(SceneOptions):
    """How the similarity of labels is made; all but the words changes scores only, so stored runs are re-scored."""

    benchmark: ClassVar[str] = ""
    """The benchmark whose presets `preset` names."""

    # Names come from the data, so that other senses re-score a stored run.
    labels: str | None = option(
        None, "Label set or file with the senses of the data's categories, such as coco80.", changes="scores"
    )
    pred_labels: str | None = option(
        None,
        "Label set, file or words (cat,red barn) of the predictions' labels, where they are not the truth's.",
        changes="answers",
    )
    pred_words: PredWords = option(
        "labels",
        "Words of the predictions: labels (the model's or --pred-labels), or free (phrases, by their nouns' senses).",
        changes="answers",
        added=True,
    )
    pred_senses: SenseChoice = option(
        "context",
        "Sense of an ambiguous free word: context (other phrases of the image count) or first (the usual one).",
        changes="answers",
        added=True,
    )
    variant: Variant = option("corrected", "Senses of shipped label sets.", changes="scores")
    measure: str = option("path", "Similarity measure (hardlook similarity --help lists them).", changes="scores")
    source: Path | None = option(None, "Word vectors or model folder, for measures that need one.", changes="scores")
    similarity: Path | None = option(
        None, "A similarity matrix of your own (CSV, npy, Parquet) in place of a measure.", changes="scores"
    )
    asymmetric: bool = option(
        False,
        "The matrix of --similarity is meant not to be symmetric: rows are true labels, columns predicted ones.",
        changes="scores",
        added=True,
    )
    unknown: UnknownPolicy = option("hypernym", "Treatment of labels that the measure does not know.", changes="scores")
    compare: tuple[str, ...] = option(
        ("path", "wup", "lin", "lesk"),
        "Measures to re-score under beside the chosen one; NAME=PATH where one needs a file or folder.",
        changes="scores",
    )
    class_sets: Path | None = option(
        None, "JSON of class names by set, such as seen and unseen; or coco-48-17.", changes="scores"
    )
    preset: str | None = option(
        None,
        "A table of the paper: its options, each dataset in a folder below --out; NAME/DATA is one of them alone.",
        changes="scores",
        added=True,
    )

    @field_validator("compare")
    @classmethod
    def _check_compared(cls, compare: tuple[str, ...]) -> tuple[str, ...]:
        names = [word.partition("=")[0] for word in set(compare)]
        if repeated := sorted(name for name in names if names.count(name) > 1):
            raise ValueError(f"{repeated[0]} has two sources")
        return compare

    @model_validator(mode="before")
    @classmethod
    def _take_preset(cls, given: Any) -> Any:
        """The options with those of the preset, where they are not given."""
        return expand_preset(list_presets(cls.benchmark), given) if isinstance(given, dict) else given


def take_preset_labels(given: Any) -> Any:
    """Options as given, with the label set of a published dataset in their `data` where they name no other.

    >>> take_preset_labels({"data": {"ade20k": "ADE"}})["labels"]
    'ade150'
    """
    data = given.get("data") if isinstance(given, dict) else None
    if not isinstance(data, dict) or given.get("labels") is not None:
        return given
    known = [labels for name in data if (labels := get_preset_labels(str(name)))]
    return {**given, "labels": known[0]} if known else given


def offer_labels(options: SimilarityOptions) -> dict[str, str]:
    """The argument `labels` for models that need words to choose from: those of the option `pred_labels`."""
    return {"labels": options.pred_labels} if options.pred_labels else {}


def free_senses(options: BenchmarkOptions) -> SenseChoice | None:
    """How senses of free words are chosen; None where predictions have labels."""
    if not isinstance(options, SimilarityOptions) or options.pred_words == "labels":
        return None
    if options.pred_labels:
        remedy = "leave out --pred-labels: free words need no list; or leave out --pred-words"
        raise OptionError("--pred-words free and --pred-labels exclude each other", remedy=remedy)
    return options.pred_senses


def similarity_readings(options: SimilarityOptions) -> tuple[Reading, ...]:
    """How the similarity is made, for the report; each has its own option, so they have no choices here."""
    if options.similarity is not None:
        how = (
            "a matrix from a file, rows true and columns predicted labels"
            if options.asymmetric
            else "a matrix from a file"
        )
        return (Reading("similarity", str(options.similarity.name), how),)
    measure = find_measure(options.measure)
    return (
        Reading("variant", options.variant, VARIANTS[options.variant], default="corrected"),
        Reading("measure", options.measure, measure.sentence, default="path"),
        Reading("unknown", options.unknown, "labels that the measure does not know", default="hypernym"),
    )
