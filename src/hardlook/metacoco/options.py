"""What MetaCoCo can be told.

The modes of a run in words: what each is, which show the same supports, whose queries are counted together.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationInfo, field_validator

from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.scorecard import Reading, Scorecard
from hardlook.metacoco.tasks.eligibility import has_common_supports
from hardlook.metacoco.tasks.images import MODES

BLIND_SUPPORTS = {
    "ours": "blind ignores context in the queries; its supports are those of the other modes",
    "paper": "blind ignores context in supports and queries",
}


class MetaCocoOptions(BenchmarkOptions):
    """Options of `hardlook run metacoco`; what is None has one default for data and one for the planted world."""

    encoder: str | None = option(
        None, "The frozen encoder of learners on features (default efficientnet-lite0).", changes="answers"
    )
    encoder_args: str = option("", "Its arguments, such as layer=stride16,size=84.", changes="answers")
    modes: tuple[str, ...] = option(
        ("blind", "iid", "ood", "swapped"),
        "How supports' and queries' contexts relate: blind, iid, ood, swapped, shared.",
        changes="units",
    )
    ways: tuple[int, ...] = option((5,), "Classes of a task, such as 5 or 5,10.", changes="units")
    shots: tuple[int, ...] | None = option(None, "Supports of a class (default 1,5; planted world 1).", changes="units")
    queries: int | None = option(None, "Queries of a class (default 15; planted world 4).", changes="units", ge=1)
    tasks: int | None = option(None, "Tasks of a repeat (default 600; planted world 40).", changes="units", ge=1)
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
        None, "Who splits concepts that come unsplit: size (as in the paper), seed, or a CSV of concept,split.",
        changes="units",
    )  # fmt: skip
    support_contexts: tuple[str, ...] = option(
        (), "Show classes in these contexts only, such as photo; none means any.", changes="units"
    )
    test_contexts: tuple[str, ...] = option((), "Keep only these contexts; none means all.", changes="units")
    train_contexts: tuple[str, ...] = option(
        (), "Contexts that the model was trained on: they are taken out of the test.", changes="units"
    )
    scenes: int = option(
        480, "How many scenes of the planted world, when no data is given.", changes="units", ge=480, le=100_000
    )
    keep_predictions: bool = option(True, "Store every query's answer, for slices and galleries.", changes="answers")
    resamples: int = option(1000, "Bootstrap resamples (of tasks) behind slices' intervals.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)

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
        """Whether the planted world stands in for data."""
        return not self.data

    def resolved(self) -> tuple[tuple[int, ...], int, int, int]:
        """Shots, queries, tasks and repeats with their defaults filled in.

        >>> MetaCocoOptions().resolved(), MetaCocoOptions(data={"root": "x"}).resolved()
        (((1,), 4, 40, 1), ((1, 5), 15, 600, 5))
        """
        usual = ((1,), 4, 40, 1) if self.planted else ((1, 5), 15, 600, 5)
        given = (self.shots, self.queries, self.tasks, self.repeats)
        shots, queries, tasks, repeats = (
            one if one is not None else default for one, default in zip(given, usual, strict=True)
        )
        return shots, queries, tasks, repeats  # type: ignore[return-value]

    @property
    def encoder_asked(self) -> bool:
        """Whether the options name an encoder or its arguments, and not the usual one is meant.

        >>> MetaCocoOptions().encoder_asked, MetaCocoOptions(encoder_args="size=84").encoder_asked
        (False, True)
        """
        return bool(self.encoder or self.encoder_args)

    def encoder_name(self) -> str:
        """The encoder that these options mean."""
        return self.encoder or ("planted-encoder" if self.planted else "efficientnet-lite0")


def chosen_readings(options: MetaCocoOptions) -> tuple[Reading, ...]:
    """Which supports blind tasks have."""
    value = options.blind_supports
    return (Reading("blind-supports", value, BLIND_SUPPORTS[value], tuple(BLIND_SUPPORTS), "ours"),)


MODE_WORDS = {
    "iid": "iid: the support's context",
    "blind": "blind: any context",
    "ood": "ood: other contexts",
    "swapped": "swapped: another class's context",
    "shared": "shared: one context for all",
}

HOME = ("iid", "blind")


def same_tasks(scorecard: Scorecard) -> str:
    """What the modes' tasks have in common; "" where there is one mode.

    >>> from hardlook.harness.scorecard import Score
    >>> same_tasks(Scorecard("metacoco", "1", "", (Score("iid", 1, 9), Score("ood", 1, 9), Score("shared", 1, 9))))
    'Rows iid, ood are the same tasks: same classes, same supports, other queries. Tasks of shared have their own. '
    """
    modes = _modes(scorecard)
    alike = [mode for mode in modes if has_common_supports(mode, _blind_supports(scorecard))]
    words = ""
    if len(alike) > 1:
        rows = "Every row is of" if len(alike) == len(modes) else f"Rows {', '.join(alike)} are"
        words = f"{rows} the same tasks: same classes, same supports, other queries. "
    if len(modes) > 1 and "blind" in modes and "blind" not in alike:
        words += "Tasks of blind have supports of their own, drawn without regard to context. "
    if len(modes) > 1 and "shared" in modes:
        words += "Tasks of shared have their own. " if words else "Tasks of shared have classes of their own. "
    return words


def pooled_modes(scorecard: Scorecard) -> str:
    """Whose queries a cell of two contexts holds: tasks of one context for all, or of mixed supports, have none.

    >>> from hardlook.harness.scorecard import Score
    >>> pooled_modes(Scorecard("metacoco", "1", "", (Score("iid", 1, 9), Score("blind", 1, 9), Score("ood", 1, 9))))
    "Cells join the queries of iid, blind, ood; the diagonal, in the support's context, those of iid, blind. "
    """
    modes = [mode for mode in _modes(scorecard) if has_common_supports(mode, _blind_supports(scorecard))]
    home = [mode for mode in modes if mode in HOME]
    diagonal = f"; the diagonal, in the support's context, those of {', '.join(home)}" if home else ""
    return f"Cells {'join' if len(modes) > 1 else 'hold'} the queries of {', '.join(modes)}{diagonal}. "


def _modes(scorecard: Scorecard) -> list[str]:
    there = {score.name for score in scorecard.scores if not score.slice}
    return [mode for mode in MODE_WORDS if mode in there]


def _blind_supports(scorecard: Scorecard) -> str:
    return next((one.value for one in scorecard.readings if one.name == "blind-supports"), "ours")
