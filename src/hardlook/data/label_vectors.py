"""A label's vector from vectors of words: one treatment each for phrases, casing and plurals.

A word is looked for as written, then in lower case, then in the singular (by simple rules of English). A label of
several words is first looked for whole, with underscores (`traffic_light`), by the same steps; then it is the mean
of its words that are known. Words are what stands between spaces, underscores, commas, slashes and brackets; one
with hyphens that is not known is split at them. A fastText model then makes the rest from n-grams.

>>> word_forms("Cherries")
('Cherries', 'cherries', 'Cherry', 'Cherrie', 'cherry', 'cherrie')
>>> from hardlook.data.word_vectors import WordVectors
>>> known = {"light": np.float32([0, 2]), "traffic": np.float32([2, 0])}
>>> label_vector("Traffic lights", WordVectors(known, {}, 2, "glove", ())).how
"mean of 'traffic' and 'light'"
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hardlook.data.word_vectors import WordVectors

IRREGULAR = {
    "people": "person",
    "children": "child",
    "feet": "foot",
    "teeth": "tooth",
    "geese": "goose",
    "mice": "mouse",
    "oxen": "ox",
    "men": "man",
    "women": "woman",
    "shoes": "shoe",
    "toes": "toe",
    "buses": "bus",
}
_ENDINGS = (
    ("men", ("man",)),
    ("ies", ("y", "ie")),
    ("ves", ("f", "fe", "ve")),
    ("shoes", ("shoe",)),
    ("oes", ("o", "oe")),
    ("sses", ("ss",)),
    ("ouses", ("ouse",)),
    ("uses", ("us", "use")),
    ("ses", ("se", "s")),
    ("xes", ("x", "xe")),
    ("zes", ("z", "ze")),
    ("ches", ("ch", "che")),
    ("shes", ("sh", "she")),
    ("ss", ()),
    ("us", ()),
    ("is", ()),
    ("s", ("",)),
)
_BETWEEN_WORDS = re.compile(r"[\s_,;/()\[\]]+")


@dataclass(frozen=True, eq=False)
class LabelVector:
    """A label's vector (D,) float32, None where no word of it is known, and how it came about.

    `how` is empty for a label that stands in the vocabulary as it is written. `missing` are words left out.
    """

    vector: NDArray[np.float32] | None = field(repr=False)
    how: str
    missing: tuple[str, ...] = ()


def singulars(word: str) -> tuple[str, ...]:
    """What the word may be the plural of, likeliest first; empty where it ends like no plural.

    >>> singulars("cherries"), singulars("knives"), singulars("glass"), singulars("bus")
    (('cherry', 'cherrie'), ('knif', 'knife', 'knive'), (), ())
    """
    if word.lower() in IRREGULAR:
        return (IRREGULAR[word.lower()],)
    for ending, singular in _ENDINGS:
        if word.lower().endswith(ending):
            stem = word[: len(word) - len(ending)]
            return tuple(stem + end for end in singular if len(stem + end) > 1)
    return ()


def word_forms(word: str) -> tuple[str, ...]:
    """The forms under which a word is looked for, in order."""
    cases = (word, word.lower())
    return tuple(dict.fromkeys([*cases, *(form for case in cases for form in singulars(case))]))


def label_words(label: str) -> tuple[str, ...]:
    """The words of a label.

    >>> label_words("dining-table (round)")
    ('dining-table', 'round')
    """
    return tuple(word for word in _BETWEEN_WORDS.split(label) if word)


def words_to_read(labels: Iterable[str]) -> frozenset[str]:
    """Every form of every word that the vectors of the labels may be made of."""
    wanted: set[str] = set()
    for label in labels:
        words = label_words(label)
        parts = [part for word in words for part in word.split("-") if part]
        for word in ("_".join(words), *words, *parts):
            wanted.update(word_forms(word))
    return frozenset(wanted - {""})


def label_vector(label: str, known: WordVectors) -> LabelVector:
    """The label's vector by the treatment above."""
    words = label_words(label)
    whole = "_".join(words)
    form = _known_form(whole, known)
    if form is not None:
        return LabelVector(known.vectors[form], "" if form == label else f"as {form!r}")
    rows: list[NDArray[np.float32]] = []
    used: list[str] = []
    missing: list[str] = []
    for word in words:
        pieces = [word] if _known_form(word, known) or "-" not in word else [p for p in word.split("-") if p]
        for piece in pieces:
            form = _known_form(piece, known)
            row = known.vectors[form] if form is not None else known.composed.get(piece)
            if row is None:
                missing.append(piece)
            else:
                rows.append(row)
                used.append(repr(form) if form is not None else f"{piece!r} (from n-grams)")
    if not rows:
        lost = _listed(list(map(repr, missing))) if missing else "an empty label"
        return LabelVector(None, f"{lost} not in the vocabulary", tuple(missing))
    what = f"mean of {_listed(used)}" if len(used) > 1 else f"as {used[0]}"
    if missing:
        what += f", without {_listed(list(map(repr, missing)))}"
    return LabelVector(np.asarray(np.mean(rows, axis=0, dtype=np.float64), np.float32), what, tuple(missing))


def _known_form(word: str, known: WordVectors) -> str | None:
    return next((form for form in word_forms(word) if form in known.vectors), None)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
