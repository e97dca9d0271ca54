"""What TOSS can be told, and its readings."""

from __future__ import annotations

import re

from pydantic import field_validator

from hardlook.benchmarks.one_shot_pairs.asked_models import AskedModel
from hardlook.benchmarks.one_shot_pairs.options import OneShotOptions, shared_readings
from hardlook.contract.options import option, read_reading
from hardlook.contract.scorecard import Reading

SCS = {
    "paper": "per class (4 L0 + 2 L1 + 2 L2 + L3 + (1-L4) + (1-L5) + (1-L6)) / 12",
    "released": "groups of levels 4 L0 + 3 L1 + L2 and L3 pooled + L4 to L6 pooled and inverted, / 9",
}
MIXED = {
    "released": "tier 3 keeps the pairs that mix two classes by a slip of names",
    "ours": "tier 3 drops the pairs that mix two classes by a slip of names",
}


class TossOptions(OneShotOptions):
    """Options of `hardlook run toss`."""

    tiers: tuple[int, ...] = option(
        (1, 2, 3), "Which tiers: 1 query complexity, 2 support cognizance, 3 generalisation.", changes="units"
    )
    folds: tuple[int, ...] | None = option(
        None, "Which folds, such as 0-3 or 0,2 (default: all that there are).", changes="units"
    )
    fixed: bool = option(False, "Run the fixed pairs of PASCAL-5i or COCO-20i instead of the tiers.", changes="units")
    shots: tuple[int, ...] = option(
        (1,), "How many supports a pair, such as 1 or 1,5; the first gives the headline scores.", changes="units"
    )
    saliency: str | None = option(
        None,
        "A saliency model to ask what stands out in tier 1's queries, such as u2netp: the report then tells whether "
        "masks follow that (default: none; planted-saliency on the planted world).",
        changes="answers",
    )
    saliency_args: str = option("", "Arguments of the saliency model: key=value, commas between.", changes="answers")
    encoder: str | None = option(
        None,
        "An encoder that tells L2 (similar) from L3 where the lists do not: by the cosine of the two images, above "
        "the mean or not.",
        changes="answers",
    )
    encoder_args: str = option("", "Arguments of the encoder: key=value, commas between.", changes="answers")

    def saliency_model(self) -> AskedModel | None:
        """The saliency model that these options mean, if any."""
        name = self.saliency or ("" if self.data else "planted-saliency")
        return AskedModel(name, self.saliency_args) if name else None

    def encoder_model(self) -> AskedModel | None:
        """The encoder that tells levels apart, if any."""
        return AskedModel(self.encoder, self.encoder_args) if self.encoder else None

    @field_validator("tiers", "folds", "shots", mode="before")
    @classmethod
    def _spread(cls, value: object) -> object:
        """Ranges as people write them: `0-3` is 0, 1, 2, 3."""
        if value is None:
            return None
        parts = value if isinstance(value, list | tuple) else str(value).split(",")
        return tuple(number for part in parts for number in _numbers(part))

    @field_validator("tiers")
    @classmethod
    def _known_tiers(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return _within(value, range(1, 4), "there are tiers 1, 2 and 3")

    @field_validator("folds")
    @classmethod
    def _known_folds(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return value if value is None else _within(value, range(1000), "folds count from 0")

    @field_validator("shots")
    @classmethod
    def _known_shots(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return _within(value, range(1, 101), "from 1 to 100 supports")


def scs_reading(options: TossOptions) -> str:
    """Which formula the support cognizance score follows."""
    return read_reading(options, "scs", SCS, "paper")


def mixed_reading(options: TossOptions) -> str:
    """What becomes of the pairs of tier 3 whose query and support are of two classes."""
    return read_reading(options, "mixed", MIXED, "released")


def chosen_readings(options: TossOptions) -> tuple[Reading, ...]:
    """All readings of a run."""
    scs, mixed = scs_reading(options), mixed_reading(options)
    return (
        Reading("scs", scs, SCS[scs], tuple(SCS), "paper"),
        *shared_readings(options),
        Reading("mixed", mixed, MIXED[mixed], tuple(MIXED), "released"),
    )


def _numbers(part: object) -> list[object]:
    found = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", str(part))
    return list(range(int(found[1]), int(found[2]) + 1)) if found else [part]


def _within(value: tuple[int, ...], allowed: range, remedy: str) -> tuple[int, ...]:
    if not value or len(set(value)) < len(value) or any(number not in allowed for number in value):
        raise ValueError(f"{remedy}, each once")
    return value
