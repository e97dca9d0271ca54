"""Options and readings of MetaCoCo."""

from __future__ import annotations

import sys
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from hardlook.data.stored_files.columns import SUMMARY
from hardlook.data.stored_files.python_objects import take_objects
from hardlook.errors import HardlookError
from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.scorecard import Reading
from hardlook.harness.stats.intervals import Method
from hardlook.metacoco.tasks.images import BLIND_SUPPORTS, MODES
from hardlook.models.preprocessing import PREPROCESSINGS, Preprocessing
from hardlook.models.registry import find


class MetaCocoOptions(BenchmarkOptions):
    """Options of `hardlook run metacoco`; the defaults of those that are None depend on whether --data is given."""

    encoder: str | None = option(
        None, "The frozen encoder for learners that take features (default efficientnet-lite0).", changes="answers"
    )
    encoder_args: str = option("", "Its arguments, such as layer=stride16,size=84.", changes="answers")
    preprocessing: Preprocessing = option(
        "encoder",
        "Images before the encoder: as they are, or resized to 96 and cropped to 84 pixels as in the paper.",
        changes="answers",
        added=True,
    )
    modes: tuple[str, ...] = option(
        ("blind", "iid", "ood", "swapped"),
        "How supports' and queries' contexts relate: blind, iid, ood, swapped, shared.",
        changes="units",
    )
    ways: tuple[int, ...] = option((5,), "Classes per task, such as 5 or 5,10.", changes="units")
    shots: tuple[int, ...] | None = option(None, "Supports per class (default 1,5; planted world 1).", changes="units")
    queries: int | None = option(None, "Queries per class (default 15; planted world 4).", changes="units", ge=1)
    tasks: int | None = option(None, "Tasks per repeat (default 600; planted world 40).", changes="units", ge=1)
    repeats: int | None = option(None, "Repeats (default 5; planted world 1).", changes="units", ge=1)
    blind_supports: Literal["ours", "paper"] = option(
        "ours", "Supports of blind tasks: those of the other modes, or drawn without regard to context.",
        changes="units",
    )  # fmt: skip
    split: str | None = option(
        None,
        "Which split to test on (default test where the data has splits, else everything); all: every split.",
        changes="units",
    )
    split_rule: str | None = option(
        None, "How to split concepts without splits: size (as in the paper), seed, or a CSV file of concept,split.",
        changes="units",
    )  # fmt: skip
    columns: str = option("", SUMMARY, changes="units", added=True)
    support_contexts: tuple[str, ...] = option(
        (), "Take supports from these contexts only, such as photo (default: any).", changes="units"
    )
    test_contexts: tuple[str, ...] = option((), "Keep only these contexts (default: all).", changes="units")
    train_contexts: tuple[str, ...] = option(
        (), "Contexts that the model was trained on; their images are left out of the test.", changes="units"
    )
    near_duplicates: Literal["keep", "drop", "refuse"] = option(
        "keep",
        "Images of equal pixels, re-saved, resized, mirrored or slightly cropped copies: keep them, drop them, refuse.",
        changes="units",
        added=True,
    )
    skip_corrupt: bool = option(
        False, "Decode all images first; leave out and count those that cannot be read.", changes="units", added=True
    )
    scenes: int = option(
        480, "Number of scenes of the planted world, without --data.", changes="units", ge=480, le=100_000
    )
    keep_predictions: bool = option(True, "Store every query's answer, for slices and galleries.", changes="answers")
    resamples: int = option(1000, "Bootstrap resamples (of tasks) for the intervals of slices.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)
    interval: Method = option(
        "jackknife",
        "Interval of scores that are not means over tasks (these have the paper's t): jackknife, percentile or bca.",
        changes="scores",
    )

    @model_validator(mode="before")
    @classmethod
    def _take_objects(cls, given: Any) -> Any:
        """The options with a path in place of a dataset object."""
        return take_objects(given)

    @field_validator("modes")
    @classmethod
    def _known_modes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) < len(value) or set(value) - set(MODES):
            raise ValueError(f"some of {', '.join(MODES)}, each once")
        return value

    @field_validator("ways", "shots")
    @classmethod
    def _positive(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None and (not value or len(set(value)) < len(value) or min(value) < 1):
            raise ValueError("whole numbers from 1, each once")
        return value

    @field_validator("train_contexts")
    @classmethod
    def _disjoint(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        both = [context for context in value if context in info.data.get("test_contexts", ())]
        if both:
            raise ValueError(f"{', '.join(both)}: also given as --test-contexts, and the two may share none")
        return value

    @property
    def planted(self) -> bool:
        """Whether tasks come from the planted world instead of data."""
        return not self.data

    def resolved(self) -> tuple[tuple[int, ...], int, int, int]:
        """Shots, queries, tasks and repeats with their defaults filled in.

        >>> MetaCocoOptions().resolved(), MetaCocoOptions(data={"root": "x"}).resolved()
        (((1,), 4, 40, 1), ((1, 5), 15, 600, 5))
        """
        shots, queries, tasks, repeats = ((1,), 4, 40, 1) if self.planted else ((1, 5), 15, 600, 5)
        # None of these options can be empty or 0.
        return self.shots or shots, self.queries or queries, self.tasks or tasks, self.repeats or repeats

    @property
    def encoder_given(self) -> bool:
        """Whether the options name an encoder or its arguments; else the default one is meant.

        >>> MetaCocoOptions().encoder_given, MetaCocoOptions(encoder_args="size=84").encoder_given
        (False, True)
        """
        return bool(self.encoder or self.encoder_args)

    def encoder_name(self) -> str:
        """The encoder given, or the default one."""
        return self.encoder or ("planted-encoder" if self.planted else "efficientnet-lite0")

    def list_other_models(self, model: str) -> dict[str, str]:
        """The encoder, where the learner works on its features.

        >>> MetaCocoOptions(encoder="clip", encoder_args="size=84").list_other_models("ridge")
        {'encoder': 'clip (size=84)'}
        >>> MetaCocoOptions().list_other_models("ridge"), MetaCocoOptions().list_other_models("lp-ft")
        ({'encoder': 'planted-encoder'}, {})
        """
        # One that is given is used, else the run is refused; the default one is used by learners on features.
        if not self.encoder_given and not _takes_default_encoder(model):
            return {}
        return {"encoder": self.encoder_name() + (f" ({self.encoder_args})" if self.encoder_args else "")}


def _takes_default_encoder(model: str) -> bool:
    """Whether this learner classifies features and has no encoder of its own; False where it is not known here."""
    module, colon, _ = model.partition(":")
    if colon and module not in sys.modules:
        return False  # No code is loaded to name a run: the name may come from the run.json of somebody else.
    try:
        learner = find(model, "few-shot-learner").factory()
    except HardlookError:
        return False
    return getattr(learner, "accepts", "") in ("features", "maps") and not hasattr(learner, "own_encoder")


def get_readings(options: MetaCocoOptions) -> tuple[Reading, ...]:
    """The readings of a run: which supports blind tasks have, and the preprocessing where it is not the encoder's."""
    value = options.blind_supports
    supports = Reading("blind-supports", value, BLIND_SUPPORTS[value], tuple(BLIND_SUPPORTS), "ours")
    chosen = options.preprocessing
    if chosen == "encoder":
        return (supports,)
    return (supports, Reading("preprocessing", chosen, PREPROCESSINGS[chosen], tuple(PREPROCESSINGS), "encoder"))
