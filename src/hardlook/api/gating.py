"""`hl.gate`: whether a run is worse than a baseline by more than is allowed, for continuous integration.

The rule is that of a non-inferiority test on the paired difference: a score fails where the whole interval of the
difference, of level 1 - 2 alpha, is below the allowed drop, so that a run that is just at the limit fails with a chance
of alpha. Where the interval reaches both sides the units cannot tell; `undecided` says what that means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hardlook.api.comparing import RunLike, compare
from hardlook.api.inline import draw_inline_table
from hardlook.errors import OptionError
from hardlook.harness.verdicts import MIN_CLUSTERS
from hardlook.report.compare.differences import Difference, find_score_meaning, list_headline_names
from hardlook.report.formatting import format_number

Outcome = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True)
class GatedScore:
    """One score of a gate: its values, the paired difference with its interval, and the outcome.

    `drop` is by how much the run is worse, negative where it is better; `low` and `high` are the interval of it.
    """

    name: str
    value: float
    baseline: float
    drop: float
    low: float
    high: float
    max_drop: float
    outcome: Outcome
    units_needed: float

    def describe(self) -> str:
        """The outcome in one sentence."""
        change = f"{self.name} {format_number(self.value, 4)} against {format_number(self.baseline, 4)}"
        between = f"between {format_number(self.low, 4)} and {format_number(self.high, 4)}"
        allowed = f"{format_number(self.max_drop, 4)} is allowed"
        if self.outcome == "failed":
            return f"{change}: worse by {format_number(self.drop, 4)} ({between}); {allowed}"
        if self.outcome == "passed":
            return f"{change}: the drop is {between}; {allowed}"
        return f"{change}: the drop is {between}, so these units cannot tell whether it is too large; {allowed}"


@dataclass(frozen=True)
class Gate:
    """The result of `hl.gate`; `passed` where no score failed, undecided ones counting as `undecided` says."""

    scores: tuple[GatedScore, ...]
    models: tuple[str, ...]
    undecided: Literal["pass", "fail"]

    @property
    def passed(self) -> bool:
        """Whether the run may replace the baseline."""
        bad = ("failed", "undecided") if self.undecided == "fail" else ("failed",)
        return not any(score.outcome in bad for score in self.scores)

    def __repr__(self) -> str:
        lines = [f"{score.outcome}: {score.describe()}" for score in self.scores]
        return "\n".join([f"gate {'passed' if self.passed else 'failed'}: {' against '.join(self.models)}", *lines])

    def _repr_html_(self) -> str:
        columns = ("name", "outcome", "value", "baseline", "drop", "low", "high", "max_drop")
        return draw_inline_table(columns, [[getattr(one, name) for name in columns] for one in self.scores])

    def to_junit(self) -> str:
        """The outcome as JUnit XML, one test case per score."""
        from xml.etree import ElementTree

        is_failure = {"failed": True, "undecided": self.undecided == "fail", "passed": False}
        counts = {
            "name": "hardlook gate",
            "tests": str(len(self.scores)),
            "failures": str(sum(is_failure[one.outcome] for one in self.scores)),
            "errors": "0",
        }
        suite = ElementTree.Element("testsuite", counts)
        for one in self.scores:
            case = ElementTree.SubElement(suite, "testcase", classname=" against ".join(self.models), name=one.name)
            if is_failure[one.outcome]:
                ElementTree.SubElement(case, "failure", message=one.describe(), type=one.outcome)
            ElementTree.SubElement(case, "system-out").text = f"{one.outcome}: {one.describe()}"
        ElementTree.indent(suite)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"

    def to_github(self) -> list[str]:
        """The outcomes as annotations of GitHub Actions: an error, a warning or a notice per score."""
        kinds = {"failed": "error", "undecided": "error" if self.undecided == "fail" else "warning", "passed": "notice"}
        return [
            f"::{kinds[one.outcome]} title=hardlook gate {one.name}::{_escape(one.describe())}" for one in self.scores
        ]


def gate(
    run: RunLike,
    baseline: RunLike,
    *,
    metrics: Sequence[str] = (),
    max_drop: float = 0.0,
    alpha: float = 0.05,
    undecided: Literal["pass", "fail"] = "pass",
    out: str | Path | None = None,
) -> Gate:
    """Whether a run is worse than a baseline by more than `max_drop`, by the paired difference on their shared units.

    Args:
        run: The new run, or its folder.
        baseline: The run that it is compared with.
        metrics: Names of scores; by default the headline scores, but for those that are neither good nor bad.
        max_drop: By how much a score may get worse, in the score's own scale; 0 allows no drop.
        alpha: The chance that a run at the limit fails.
        undecided: Whether a score passes or fails where the units cannot tell.
        out: Where the comparison's page goes; without it none is written.
    """
    if not 0 <= max_drop < float("inf"):
        raise OptionError(f"--max-drop {max_drop}: expected a number from 0", remedy="for example --max-drop .01")
    if not 0 < alpha < 0.5:
        raise OptionError(f"--alpha {alpha}: expected a number between 0 and .5", remedy="for example --alpha .05")
    if undecided not in ("pass", "fail"):
        raise OptionError(f"--undecided {undecided}: expected pass or fail")
    compared = compare(run, baseline, names=("run", "baseline"), alpha=2 * alpha, out=out)
    comparison = compared.comparison
    if not comparison.differences:
        what = f"the scores of {comparison.benchmark.card.name} cannot be compared unit by unit (it has no tallies)"
        raise OptionError(what, remedy="gate a benchmark whose runs can be compared")
    over_all = {one.name: one for one in reversed(comparison.differences) if not one.slice}
    card = comparison.benchmark.card
    ranked = [name for name in over_all if find_score_meaning(card, name).ranked]
    names = list(metrics) or [name for name in list_headline_names(card) if name in ranked]
    if unknown := [name for name in names if name not in over_all]:
        raise OptionError(
            f"--metric {unknown[0]}: these runs have no such score", remedy=f"they have: {', '.join(sorted(over_all))}"
        )
    if undirected := [name for name in names if name not in ranked]:
        what = f"--metric {undirected[0]}: neither more nor less of it is better, so that a run cannot be worse in it"
        raise OptionError(what, remedy=f"gate one of these: {', '.join(sorted(ranked))}")
    scores = [judge(over_all[name], find_score_meaning(card, name).higher_is_better, max_drop) for name in names]
    models = tuple(group[0].method for group in compared.runs)
    return Gate(tuple(scores), models, undecided)


def judge(difference: Difference, higher_is_better: bool, max_drop: float) -> GatedScore:
    """The outcome of one score; an error where too few units have it."""
    low, high = difference.bounds
    if difference.standard_error == 0 and difference.clusters >= MIN_CLUSTERS:
        low = high = difference.value  # the same on all units, such as 0 where all answers are equal
    if low is None or high is None:
        why = f": {difference.reason}" if difference.reason else f" from {difference.clusters} {difference.resampled}s"
        what = f"the difference in {difference.name} has no interval{why}"
        raise OptionError(what, remedy="run more units, or gate another score")
    drop, ends = (-difference.value, (-high, -low)) if higher_is_better else (difference.value, (low, high))
    outcome: Outcome = "failed" if ends[0] > max_drop else "passed" if ends[1] <= max_drop else "undecided"
    values = (difference.first_value, difference.second_value, drop, *ends, max_drop)
    return GatedScore(difference.name, *values, outcome, difference.units_needed)


def _escape(text: str) -> str:
    """A text as GitHub's workflow commands take it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
