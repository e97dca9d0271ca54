"""Predictions whose numbers are off by one: what the score would be with every predicted label one lower or higher.

>>> tables = shift_labels(["cat", "dog", "owl"], ["cat", "dog", "owl"])
>>> {word: table.tolist() for word, table in tables.items()}
{'lower': [3, 0, 1, 3], 'higher': [1, 2, 3, 3]}
>>> describe_shift("AP", 0.027, {"lower": 0.01, "higher": 0.168}, "check the category ids")
'the AP is 0.027, and 0.168 with every predicted label one higher: check the category ids'
>>> describe_shift("AP", 0.1, {"lower": 0.19, "higher": 0.01}, "check the category ids")
''
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import LeftOut
from hardlook.open_vocabulary.vocabulary import join_labels

# What labels one higher or lower must add to the score to be worth a warning; it must also more than double.
MIN_GAIN = 0.1


def shift_labels(names: Sequence[str], predicted: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Tables (K + 1,) of what each of the K labels becomes with every predicted label one lower, and one higher.

    `names` are all labels of a run, `predicted` the labels of the predictions in the order of their numbers. K is no
    label: the last entry, and what a shift moves out of the list.
    """
    _, places = join_labels(names, predicted)
    tables = {}
    for word, kept, taken in (("lower", places[1:], places[:-1]), ("higher", places[:-1], places[1:])):
        tables[word] = np.full(len(names) + 1, len(names), np.int64)
        tables[word][kept] = taken
    return tables


def describe_shift(score: str, value: float, shifted: Mapping[str, float], remedy: str) -> str:
    """A sentence where a shift would more than double the score and raise it by .1; else nothing."""
    word = max(shifted, key=lambda one: shifted[one])
    if not (shifted[word] > 2 * value and shifted[word] - value >= MIN_GAIN):
        return ""
    found, better = format_fixed(value, 3), format_fixed(shifted[word], 3)
    return f"the {score} is {found}, and {better} with every predicted label one {word}: {remedy}"


def warn_of_shift(what: str, units: int, sentence: str) -> tuple[LeftOut, ...]:
    """The sentence as a warning of the scorecard, where there is one."""
    return (LeftOut(what, units, sentence, kept=True, warning=True),) if sentence else ()
