"""Options and readings of TOSS, and those that all benchmarks on one-shot pairs share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from hardlook.harness.options import BenchmarkOptions, option, read_reading
from hardlook.harness.scorecard import Reading
from hardlook.harness.stats.intervals import Method
from hardlook.models.named_model import NamedModel, build_inner

FIXED, COMPLEXITY, COGNIZANCE, GENERAL = range(4)
"""The fixed pairs, and tiers 1, 2 and 3."""

VOID = {
    "ignored": "pixels that the truth leaves open count for nothing",
    "background": "pixels that the truth leaves open are no part of the class: predicting them is wrong",
}
SIZES = {"original": "every query at its own size", "512": "images and masks squashed to 512 x 512 first"}
SCS = {
    "paper": "per class (4 L0 + 2 L1 + 2 L2 + L3 + (1-L4) + (1-L5) + (1-L6)) / 12",
    "released": "groups of levels 4 L0 + 3 L1 + L2 and L3 pooled + L4 to L6 pooled and inverted, / 9",
}
MIXED = {
    "released": "tier 3 keeps the pairs that mix two classes by a slip of names",
    "ours": "tier 3 drops the pairs that mix two classes by a slip of names",
}
# The values of each reading with their meanings, and the default.
_READINGS = {"void": (VOID, "ignored"), "scs": (SCS, "paper"), "mixed": (MIXED, "released")}


@dataclass(frozen=True)
class AuxiliaryModel:
    """A model that is used beside the one under test: a saliency model or an encoder.

    `args` are its arguments in one text, `key=value` separated by commas.

    >>> AuxiliaryModel("planted-saliency").build("saliency").identity.name
    'planted-saliency'
    """

    name: str
    args: str = ""

    def build(self, role: str) -> NamedModel:
        """The model, built once per process."""
        return _build(self, role)

    def fingerprint(self, role: str) -> str:
        """What its answers depend on: name, arguments, code and weights."""
        return self.build(role).identity.fingerprint()


@lru_cache(maxsize=4)
def _build(model: AuxiliaryModel, role: str) -> NamedModel:
    return build_inner(model.name, role, model.args)


class OneShotOptions(BenchmarkOptions):
    """How pairs are read and scored."""

    scenes: int = option(
        96, "How many scenes of the planted world, when no data is given.", changes="units", ge=24, le=10_000
    )
    labels: str | None = option(
        None, "A file of class names, the first for 1, for --data images=DIR --data masks=DIR.", changes="units"
    )
    folds: tuple[int, ...] | None = option(
        None, "Which folds, such as 0-3 or 0,2 (default: all that there are).", changes="units"
    )
    subset: Literal["all", "available"] = option(
        "all",
        "all refuses pairs whose images are missing; available leaves them out and marks every score.",
        changes="units",
    )
    size: Literal["original", "512"] = option(
        "original", "The size of model inputs and scored masks: the image's own, or 512 x 512.", changes="answers"
    )
    keep_predictions: bool = option(True, "Store predicted masks, so that the report can show them.", changes="answers")
    resamples: int = option(2000, "Bootstrap resamples (of query images) behind each interval.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)
    interval: Method = option("jackknife", "Interval: jackknife, percentile or bca.", changes="scores")

    @field_validator("folds", mode="before")
    @classmethod
    def _expand_folds(cls, value: object) -> object:
        return None if value is None else _expand_ranges(value)

    @field_validator("folds")
    @classmethod
    def _check_folds(cls, value: tuple[int, ...] | None, info: ValidationInfo) -> tuple[int, ...] | None:
        return None if value is None else _check_numbers(value, info)

    @property
    def void_ignored(self) -> bool:
        """Whether pixels that the truth leaves open count for nothing."""
        return _get_reading(self, "void").value == "ignored"


class TossOptions(OneShotOptions):
    """Options of `hardlook run toss`."""

    tiers: tuple[int, ...] = option(
        (1, 2, 3), "Which tiers: 1 query complexity, 2 support cognizance, 3 generalisation.", changes="units"
    )
    per_fold: bool = option(
        False,
        "Answer tier 3 once for each fold, as models that are trained per fold do (default: where --folds names one "
        "fold, where --model-arg has {fold}, and where --pred holds tier3-fold0-00001.png).",
        changes="units",
        added=True,
    )
    fixed: bool = option(False, "Run the fixed pairs of PASCAL-5i or COCO-20i instead of the tiers.", changes="units")
    shots: tuple[int, ...] = option(
        (1,), "Supports per pair, such as 1 or 1,5; the first number gives the headline scores.", changes="units"
    )
    saliency: str | None = option(
        None,
        "A saliency model for tier 1's queries, such as u2netp: the report then shows whether masks follow salience "
        "(default: none; planted-saliency on the planted world).",
        changes="answers",
    )
    saliency_args: str = option("", "Arguments of the saliency model: key=value, commas between.", changes="answers")
    encoder: str | None = option(
        None,
        "An encoder that separates L2 (similar) from L3 where the lists do not: by the cosine of the two images, above "
        "the mean or not.",
        changes="answers",
    )
    encoder_args: str = option("", "Arguments of the encoder: key=value, commas between.", changes="answers")

    @property
    def scs_reading(self) -> str:
        """Which formula the support cognizance score follows: a key of `SCS`."""
        return _get_reading(self, "scs").value

    @property
    def mixed_kept(self) -> bool:
        """Whether tier 3 keeps the pairs whose query and support are of two classes."""
        return _get_reading(self, "mixed").value == "released"

    def saliency_model(self) -> AuxiliaryModel | None:
        """The saliency model of these options, if any."""
        name = self.saliency or ("" if self.data else "planted-saliency")
        return AuxiliaryModel(name, self.saliency_args) if name else None

    def encoder_model(self) -> AuxiliaryModel | None:
        """The encoder that separates L2 from L3, if any."""
        return AuxiliaryModel(self.encoder, self.encoder_args) if self.encoder else None

    @model_validator(mode="before")
    @classmethod
    def _choose_per_fold(cls, given: Any) -> Any:
        """A run of one fold has the model of that fold, and stored masks say by their names whose they are."""
        if not isinstance(given, dict) or given.get("per_fold") is not None:
            return given
        if given.get("pred") is not None:
            return {**given, "per_fold": any(Path(given["pred"]).glob("tier3-fold*.png"))}
        folds = None if given.get("folds") is None else _expand_ranges(given["folds"])
        return {**given, "per_fold": folds is not None and len(folds) == 1}

    @field_validator("tiers", "shots", mode="before")
    @classmethod
    def _expand(cls, value: object) -> object:
        return _expand_ranges(value)

    @field_validator("tiers", "shots")
    @classmethod
    def _check(cls, value: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        return _check_numbers(value, info)


def _expand_ranges(value: object) -> tuple[object, ...]:
    """The numbers of an option as a tuple.

    >>> _expand_ranges("0-2,5")
    (0, 1, 2, '5')
    """
    numbers: list[object] = []
    for part in value if isinstance(value, list | tuple) else str(value).split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", str(part))
        numbers += range(int(ends[1]), int(ends[2]) + 1) if ends else [part]
    return tuple(numbers)


def _check_numbers(value: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
    allowed, remedy = {
        "tiers": (range(1, 4), "there are tiers 1, 2 and 3"),
        "folds": (range(1000), "folds count from 0"),
        "shots": (range(1, 101), "from 1 to 100 supports"),
    }[str(info.field_name)]
    if not value or len(set(value)) < len(value) or not set(value) <= set(allowed):
        raise ValueError(f"{remedy}, each once")
    return value


def _get_reading(options: OneShotOptions, name: str) -> Reading:
    choices, default = _READINGS[name]
    value = read_reading(options, name, choices, default)
    return Reading(name, value, choices[value], tuple(choices), default)


def shared_readings(options: OneShotOptions) -> tuple[Reading, ...]:
    """The readings of every benchmark on pairs."""
    size = Reading("size", options.size, SIZES[options.size], tuple(SIZES), "original")
    return (_get_reading(options, "void"), size)


def get_readings(options: TossOptions) -> tuple[Reading, ...]:
    """All readings of a run."""
    return (_get_reading(options, "scs"), *shared_readings(options), _get_reading(options, "mixed"))
