"""What the numbers of TOSS say about a model, in plain words."""

from __future__ import annotations

from collections.abc import Mapping

from hardlook.benchmarks.one_shot_pairs.following_section import following_words
from hardlook.benchmarks.one_shot_pairs.shown_scores import FOLLOWED_TO, IGNORED_FROM, number_of
from hardlook.contract.scorecard import Scorecard, found

NOBODY_ASKED = (
    "That is an association: salient targets may be easier for any model. Whether this one follows salience instead "
    "of the support is told by a run with `--saliency MODEL`."
)
SAME_CLASS = ("L2", "L3", "L2+L3")
SPURIOUS = {"L4": "of another class", "L5": "without a mask", "L6": "without an image"}


def salience_words(scorecard: Scorecard) -> str:
    """Whether salient targets are found better, by how much, and whether salience is what the model follows."""
    gap, salient, other = (found(scorecard, name) for name in ("salience-gap", "salient", "non-salient"))
    followed = following_words(scorecard)
    if gap is None or salient is None or other is None:
        return followed
    numbers = f"mIoU is {salient.value:.3f} on salient targets and {other.value:.3f} on the others"
    numbers += f", a gap of {number_of(gap)}"
    if gap.interval and gap.interval.low > 0:
        verdict = f"Salient targets are found better: {numbers}."
    elif gap.interval and gap.interval.high < 0:
        verdict = f"Salient targets are found less well: {numbers}."
    else:
        verdict = f"No preference for salient targets shows: {numbers}."
    verdict += " The published models have gaps of 0.23 to 0.25."
    return f"{verdict} {followed or NOBODY_ASKED}"


def support_words(scorecard: Scorecard) -> str:
    """How much of the right support's IoU is left when the support shows something else."""
    same = [score.value for level in SAME_CLASS if (score := found(scorecard, "miou", level=level))]
    if not same or not sum(same):
        return ""
    right = sum(same) / len(same)
    parts = []
    shares: dict[str, float] = {}
    for level, words in SPURIOUS.items():
        score = found(scorecard, "miou", level=level)
        if score:
            shares[level] = score.value / right
            parts.append(f"{shares[level]:.0%} of it with a support {words}")
    if not shares:
        return ""
    return (
        f"With a support of the right class the query's object is found with an mIoU of {right:.3f}; "
        f"{', '.join(parts)} is still there. {_judgement(shares)}"
    )


def _judgement(shares: Mapping[str, float]) -> str:
    worst = max(shares.values())
    if min(shares.values()) >= IGNORED_FROM:
        return "The support is all but ignored: the model finds the query's object whatever it is shown."
    if worst <= FOLLOWED_TO:
        return "The support is followed: without it next to nothing is found."
    if shares.get("L4", 0.0) > FOLLOWED_TO and max(shares.get("L5", 0.0), shares.get("L6", 0.0)) <= FOLLOWED_TO:
        if shares["L4"] >= IGNORED_FROM:
            return "It needs some support and hardly minds of what: another class serves nearly as well."
        return "It needs a support, and in part any will do: much of what it finds it finds with another class too."
    return "The support is followed in part: much is found that it does not show."
