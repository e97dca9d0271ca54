"""What a report says and shows about what a model follows."""

from __future__ import annotations

from hardlook.benchmarks.one_shot_pairs.following import (
    COVERED_SALIENCE,
    COVERED_TARGET,
    LEAD,
    PULL,
    SALIENCE,
    TRUTH,
)
from hardlook.contract.scorecard import Score, Scorecard, found
from hardlook.contract.sections import DotChart, dot_of

LABELS = {
    TRUTH: ("the target", "mIoU of the masks with"),
    SALIENCE: ("what is salient", "mIoU of the masks with"),
    COVERED_TARGET: ("only target", "share that the masks cover of what is"),
    COVERED_SALIENCE: ("only salient", "share that the masks cover of what is"),
}


def following_words(scorecard: Scorecard) -> str:
    """What the masks go with where the target is not salient; empty where nobody asked.

    That salience is followed instead of the support is said where the masks go better with it and also cover more of
    what is only salient than of what is only target, both beyond chance. Where the two disagree, both are said.
    """
    known = {name: found(scorecard, name) for name in (*LABELS, LEAD, PULL)}
    if not all(known.values()):
        return ""
    truth, salience, target, other, lead, pull = (score for score in known.values() if score)
    numbers = (
        f"where the target is not salient, the masks have an mIoU of {salience.value:.3f} with what is salient and of "
        f"{truth.value:.3f} with the target (difference {_difference(lead)}), and cover {other.value:.0%} of what is "
        f"only salient and {target.value:.0%} of what is only target (difference {_difference(pull)})"
    )
    if pull.interval and lead.interval and pull.interval.low > 0 and lead.interval.low > 0:
        return f"This model follows salience instead of the support: {numbers}."
    if pull.interval and lead.interval and pull.interval.high < 0 < lead.interval.low:
        return (
            "This model covers the target rather than what is salient, though its masks overlap better with the "
            f"latter, as large masks do where that is the larger region: {numbers}."
        )
    if pull.interval and pull.interval.high < 0:
        return f"This model follows the target rather than salience: {numbers}."
    return f"Whether this model follows salience cannot be told: {numbers}."


def _difference(score: Score) -> str:
    """The value and its interval, to stand in parentheses.

    >>> _difference(Score("salience-lead", -0.184, 3))
    '\N{MINUS SIGN}0.184'
    """
    interval = score.interval
    words = f"{score.value:.3f}" + (f", {interval.low:.3f} to {interval.high:.3f}" if interval else "")
    return words.replace("-", "\N{MINUS SIGN}")


def following_chart(scorecard: Scorecard) -> DotChart | None:
    """Both overlaps and both covered shares, one under the other."""
    rows = [dot_of(score, *words) for name, words in LABELS.items() if (score := found(scorecard, name))]
    if len(rows) < len(LABELS):
        return None
    return DotChart(
        "Targets that are not salient: what the masks go with",
        "The same masks, held against the target and against what is salient in the query. A model that follows its "
        "support has the first dot of each pair far right of the second. The covered shares do not depend on which "
        "of the two regions is larger.",
        tuple(rows),
        axis="mIoU or share",
    )
