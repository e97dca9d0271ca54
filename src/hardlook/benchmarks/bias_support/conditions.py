"""The ablations of the paper's Table 2A: what the support shows in place of the right thing."""

from __future__ import annotations

from dataclasses import dataclass

from hardlook.benchmarks.one_shot_pairs.pairs import Shown
from hardlook.benchmarks.toss.published_biases import SUPPORTS


@dataclass(frozen=True)
class Condition:
    """One way to show a support: its name as a score, what it means, and what is done."""

    name: str
    words: str
    other_class: bool
    shown: Shown
    published: float


CONDITIONS = (
    Condition("correct", "the right class and its mask", False, "as it is", SUPPORTS["correct"].mean),
    Condition("other-class", "another class: C(q) != C(s)", True, "as it is", SUPPORTS["other class"].mean),
    Condition("no-mask", "the right image, no mask: M_s = 0", False, "no mask", SUPPORTS["null mask"].mean),
    Condition("no-image", "a black image, the right mask: I_s = 0", False, "no image", SUPPORTS["null image"].mean),
    Condition(
        "other-class-no-mask",
        "another class's image, no mask",
        True,
        "no mask",
        SUPPORTS["other class, null mask"].mean,
    ),
)
CORRECT, *SPURIOUS = CONDITIONS
"""The first is the yardstick; `published` are the paper's means over folds of its baseline."""


def condition_words(name: str) -> str:
    """A condition in words, without its formula.

    >>> condition_words("other-class")
    'another class'
    """
    [words] = [one.words for one in CONDITIONS if one.name == name]
    return words.partition(":")[0]
