"""Vectors of labels, from a file of word vectors or a text encoder.

With word vectors, a word is looked up as written, then in lower case, then in the singular (by simple rules of
English). A label of several words is first looked up as a whole, joined by underscores (`traffic_light`), by the same
steps; otherwise its vector is the mean over its known words. Words are separated by spaces, underscores, commas,
slashes and brackets; an unknown word with hyphens is split at them. A fastText model composes the rest from n-grams.

A label without a vector is looked up by its aliases, then treated by the policy `unknown`: `hypernym` (the words of
its synset, then of the nearest hypernym that has a vector), `zero` (a zero vector), `random` (a seeded random
direction, as in the paper), or `error`. Text encoders know every text.

>>> list_word_forms("Cherries")
('Cherries', 'cherries', 'Cherry', 'Cherrie', 'cherry', 'cherrie')
>>> known = {"light": np.float32([0, 2]), "traffic": np.float32([2, 0])}
>>> label_vector("Traffic lights", WordVectors(known, {}, 2, "glove", ())).how
"mean of 'traffic' and 'light'"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.fingerprints import hash_data, hash_value
from hardlook.models.answer_checks import check_answers
from hardlook.models.registry import build
from hardlook.randomness import generator
from hardlook.similarity.label_synsets import UnknownPolicy
from hardlook.similarity.labels import Label, label_text
from hardlook.similarity.word_vectors import WordVectors, read_word_vectors
from hardlook.similarity.wordnet.nouns import load_nouns

_LISTED_LABELS = 20
_SEPARATORS = re.compile(r"[\s_,;/()\[\]]+")

IRREGULAR_PLURALS = {
    "people": "person", "children": "child", "feet": "foot", "teeth": "tooth", "geese": "goose", "mice": "mouse",
    "oxen": "ox", "men": "man", "women": "woman", "shoes": "shoe", "toes": "toe", "buses": "bus",
}  # fmt: skip

# The first ending that matches counts; what may replace it comes likeliest first.
_PLURAL_ENDINGS = (
    ("men", ("man",)), ("ies", ("y", "ie")), ("ves", ("f", "fe", "ve")), ("shoes", ("shoe",)), ("oes", ("o", "oe")),
    ("sses", ("ss",)), ("ouses", ("ouse",)), ("uses", ("us", "use")), ("ses", ("se", "s")), ("xes", ("x", "xe")),
    ("zes", ("z", "ze")), ("ches", ("ch", "che")), ("shes", ("sh", "she")), ("ss", ()), ("us", ()), ("is", ()),
    ("s", ("",)),
)  # fmt: skip


@dataclass(frozen=True)
class LabelVectors:
    """Vectors (K, D) float32 of K labels, their origin, and (label, how) of those not simply looked up, in order."""

    vectors: NDArray[np.float32] = field(repr=False)
    treated: tuple[tuple[str, str], ...]
    fingerprint: str
    source: str


@dataclass(frozen=True, eq=False)
class LabelVector:
    """A label's vector (D,) float32 or None, `how` it was made (empty: as written), and the `missing` words."""

    vector: NDArray[np.float32] | None = field(repr=False)
    how: str
    missing: tuple[str, ...] = ()


def load_word_vectors(labels: Sequence[Label], path: Path, unknown: UnknownPolicy, seed: int = 0) -> LabelVectors:
    """The labels' vectors from a file in any format of `hardlook.similarity.word_vectors`; the file is read once."""
    substitutes = {label.name: _list_hypernym_words(label) if unknown == "hypernym" else () for label in labels}
    texts = {text for label in labels for text in (label_text(label), *label.aliases, *substitutes[label.name])}
    known = read_word_vectors(path, list_words_to_read(texts))
    rows: list[NDArray[Any]] = []
    treated: list[tuple[str, str]] = []
    without: list[str] = []
    for label in labels:
        row, how = _look_up(label, known)
        if row is None:
            row, how = _replace_unknown(label, substitutes[label.name], known, unknown, seed)
        if row is None:
            without.append(label.name)
            continue
        rows.append(row)
        if how:
            treated.append((label.name, how))
    if without:
        listed = ", ".join(without[:_LISTED_LABELS])
        more = f" and {len(without) - _LISTED_LABELS} more" if len(without) > _LISTED_LABELS else ""
        raise DataError(
            f"{len(without)} of {len(labels)} labels have no vector: {listed}{more}",
            file=path,
            remedy="give them a synset or hypernym, or pass --unknown zero or random"
            if unknown == "hypernym"
            else "pass --unknown hypernym, zero or random",
        )
    vectors = np.array(rows, np.float32).reshape(len(rows), known.dimension)
    source = f"{known.format} vectors of {known.dimension} dimensions, {path.name}"
    return LabelVectors(vectors, tuple(treated), hash_value([hash_data(file) for file in known.files]), source)


def encode_labels(labels: Sequence[Label], model: str, arguments: Mapping[str, Any]) -> LabelVectors:
    """The labels' vectors from the text encoder registered as `model`, built with `arguments`."""
    encoder = build(model, "text-encoder", arguments)
    texts = [label_text(label) for label in labels]
    treated = [(one.name, f"read as {text!r}") for one, text in zip(labels, texts, strict=True) if text != one.name]
    files = [Path(file) for file in getattr(encoder, "weights_files", ())]
    settings = {key: str(value) for key, value in arguments.items() if key not in ("path", "weights")}
    described = "".join(f", {key} {value!r}" for key, value in sorted(settings.items()))
    fingerprint = hash_value([settings, [hash_data(file) for file in files]])
    source = f"the text encoder {model}{described}"
    vectors = encoder.encode_text(texts)
    check_answers("text-encoder", encoder, vectors, texts)
    return LabelVectors(vectors, tuple(treated), fingerprint, source)


def random_vector(name: str, dimensions: int, seed: int = 0) -> NDArray[np.float64]:
    """(dimensions,) a random direction of length 1 for a word without a vector; the same for equal arguments.

    >>> float(random_vector("wakeboard", 50) @ random_vector("wakeboard", 50)).__round__(6)
    1.0
    """
    drawn = generator(seed, "label", name).standard_normal(dimensions)
    return np.asarray(drawn / np.linalg.norm(drawn))


def label_vector(label: str, known: WordVectors) -> LabelVector:
    """The vector of a label's text from vectors of words, by the rules above."""
    words = label_words(label)
    if (form := _find_known_form("_".join(words), known)) is not None:
        return LabelVector(known.vectors[form], "" if form == label else f"as {form!r}")
    rows: list[NDArray[np.float32]] = []
    used: list[str] = []
    missing: list[str] = []
    for word in words:
        pieces = [word] if _find_known_form(word, known) or "-" not in word else [p for p in word.split("-") if p]
        for piece in pieces:
            form = _find_known_form(piece, known)
            row = known.vectors[form] if form is not None else known.composed.get(piece)
            if row is None:
                missing.append(piece)
            else:
                rows.append(row)
                used.append(repr(form) if form is not None else f"{piece!r} (from n-grams)")
    if not rows:
        unknown = _join(list(map(repr, missing))) if missing else "an empty label"
        return LabelVector(None, f"{unknown} not in the vocabulary", tuple(missing))
    how = f"mean of {_join(used)}" if len(used) > 1 else f"as {used[0]}"
    if missing:
        how += f", without {_join(list(map(repr, missing)))}"
    return LabelVector(np.asarray(np.mean(rows, axis=0, dtype=np.float64), np.float32), how, tuple(missing))


def list_words_to_read(labels: Iterable[str]) -> frozenset[str]:
    """Every form of every word that `label_vector` may look up for the labels."""
    wanted: set[str] = set()
    for label in labels:
        words = label_words(label)
        for text in ("_".join(words), *words, *(part for word in words for part in word.split("-") if part)):
            wanted.update(list_word_forms(text))
    return frozenset(wanted - {""})


def label_words(label: str) -> tuple[str, ...]:
    """The words of a label.

    >>> label_words("dining-table (round)")
    ('dining-table', 'round')
    """
    return tuple(word for word in _SEPARATORS.split(label) if word)


def list_word_forms(word: str) -> tuple[str, ...]:
    """The forms under which a word is looked up, in order."""
    cases = (word, word.lower())
    return tuple(dict.fromkeys([*cases, *(form for case in cases for form in list_singulars(case))]))


def list_singulars(word: str) -> tuple[str, ...]:
    """What the word may be the plural of, likeliest first; empty where it ends like no plural.

    >>> list_singulars("cherries"), list_singulars("knives"), list_singulars("glass"), list_singulars("bus")
    (('cherry', 'cherrie'), ('knif', 'knife', 'knive'), (), ())
    """
    if word.lower() in IRREGULAR_PLURALS:
        return (IRREGULAR_PLURALS[word.lower()],)
    for ending, singular in _PLURAL_ENDINGS:
        if word.lower().endswith(ending):
            stem = word[: len(word) - len(ending)]
            return tuple(stem + end for end in singular if len(stem + end) > 1)
    return ()


def _look_up(label: Label, known: WordVectors) -> tuple[NDArray[np.float32] | None, str]:
    """The vector of the label's text or an alias; a text whose words are all known precedes one that lacks some."""
    tried = {text: label_vector(text, known) for text in (label_text(label), *label.aliases)}
    for text, result in sorted(tried.items(), key=lambda pair: bool(pair[1].missing)):
        if result.vector is not None:
            return result.vector, result.how or (f"as {text!r}" if text != label.name else "")
    return None, ""


def _replace_unknown(
    label: Label, substitutes: Sequence[str], known: WordVectors, unknown: UnknownPolicy, seed: int
) -> tuple[NDArray[Any] | None, str]:
    if unknown == "zero":
        return np.zeros(known.dimension), "unknown: similarity 0 to all others"
    if unknown == "random":
        return random_vector(label.name, known.dimension, seed), f"unknown: a random vector (seed {seed})"
    for text in substitutes:
        result = label_vector(text, known)
        if result.vector is not None and not result.missing:
            return result.vector, f"unknown: stands as {text!r}, from WordNet"
    return None, ""


def _list_hypernym_words(label: Label) -> tuple[str, ...]:
    """Words of the label's synset, then of its hypernyms up to the root, nearest first."""
    if label.sense is None:
        return ()
    nouns = load_nouns()
    path = reversed(nouns.hypernym_path(nouns.index(label.sense)))
    return tuple(dict.fromkeys(lemma.replace("_", " ") for node in path for lemma in nouns.lemmas(node)))


def _find_known_form(word: str, known: WordVectors) -> str | None:
    return next((form for form in list_word_forms(word) if form in known.vectors), None)


def _join(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
