"""Vectors of labels, from a file of word vectors or a text encoder.

A label of which word vectors lack a word is looked for by its aliases, then treated as `unknown` says: `hypernym` (the
words of its synset, then of the nearest hypernym that has a vector), `zero` (a zero vector), `random` (a seeded
random direction, as in the paper), or `error`. Text encoders know every text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.label_vectors import label_vector, words_to_read
from hardlook.data.word_vectors import WordVectors, read_word_vectors
from hardlook.errors import DataError
from hardlook.fingerprint import of_data, of_value
from hardlook.labels.label_set import Label
from hardlook.labels.unknown import Unknown, random_vector
from hardlook.labels.wording import wording
from hardlook.models.registry import build
from hardlook.wordnet.nouns import load_nouns

SHOWN = 20


@dataclass(frozen=True)
class LabelVectors:
    """Vectors (K, D) float32 of K labels, how labels that needed it were treated, and what was read.

    `treated` holds (label, how) in the order of the labels.
    """

    vectors: NDArray[np.float32] = field(repr=False)
    treated: tuple[tuple[str, str], ...]
    fingerprint: str
    source: str


def from_word_vectors(labels: Sequence[Label], path: Path, unknown: Unknown, seed: int = 0) -> LabelVectors:
    """Vectors from a file of any format that `hardlook.data.word_vectors` reads; the file is read once."""
    spare = {label.name: _above(label) if unknown == "hypernym" else () for label in labels}
    texts = {text for label in labels for text in (wording(label), *label.aliases, *spare[label.name])}
    known = read_word_vectors(path, words_to_read(texts))
    rows: list[NDArray[Any]] = []
    treated: list[tuple[str, str]] = []
    lost: list[str] = []
    for label in labels:
        row, how = _first_known(label, known)
        if row is None:
            row, how = _stand_in(label, spare[label.name], known, unknown, seed)
        if row is None:
            lost.append(label.name)
            continue
        rows.append(row)
        if how:
            treated.append((label.name, how))
    if lost:
        raise _unknown_words(lost, len(labels), path, unknown)
    vectors = np.array(rows, np.float32).reshape(len(rows), known.dimension)
    source = f"{known.format} vectors of {known.dimension} dimensions, {path.name}"
    return LabelVectors(vectors, tuple(treated), of_value([of_data(file) for file in known.files]), source)


def from_text_encoder(labels: Sequence[Label], model: str, arguments: Mapping[str, Any]) -> LabelVectors:
    """Vectors from the text encoder registered as `model`, made with `arguments`."""
    encoder = build(model, "text-encoder", arguments)
    texts = [wording(label) for label in labels]
    treated = [(one.name, f"read as {text!r}") for one, text in zip(labels, texts, strict=True) if text != one.name]
    files = [Path(file) for file in getattr(encoder, "weights_files", ())]
    settings = {key: str(value) for key, value in arguments.items() if key not in ("path", "weights")}
    said = "".join(f", {key} {value!r}" for key, value in sorted(settings.items()))
    fingerprint = of_value([settings, [of_data(file) for file in files]])
    return LabelVectors(encoder.encode_text(texts), tuple(treated), fingerprint, f"the text encoder {model}{said}")


def _first_known(label: Label, known: WordVectors) -> tuple[NDArray[np.float32] | None, str]:
    """By its wording or an alias; one whose words are all known goes before one that lacks some."""
    tried = {text: label_vector(text, known) for text in (wording(label), *label.aliases)}
    for text, found in sorted(tried.items(), key=lambda pair: bool(pair[1].missing)):
        if found.vector is not None:
            return found.vector, found.how or (f"as {text!r}" if text != label.name else "")
    return None, ""


def _stand_in(
    label: Label, spare: Sequence[str], known: WordVectors, unknown: Unknown, seed: int
) -> tuple[NDArray[Any] | None, str]:
    if unknown == "zero":
        return np.zeros(known.dimension), "unknown: similarity 0 to all others"
    if unknown == "random":
        return random_vector(label.name, known.dimension, seed), f"unknown: a random vector (seed {seed})"
    for text in spare:
        found = label_vector(text, known)
        if found.vector is not None and not found.missing:
            return found.vector, f"unknown: stands as {text!r}, from WordNet"
    return None, ""


def _above(label: Label) -> tuple[str, ...]:
    """Words of the label's synset, then of its hypernyms up to the root, nearest first."""
    return tuple(dict.fromkeys(_lemmas(label)))


def _lemmas(label: Label) -> Iterator[str]:
    sense = label.synset or label.hypernym
    if sense is not None:
        nouns = load_nouns()
        for node in reversed(nouns.hypernym_path(nouns.index(sense))):
            yield from (lemma.replace("_", " ") for lemma in nouns.lemmas(node))


def _unknown_words(lost: Sequence[str], count: int, path: Path, unknown: Unknown) -> DataError:
    names = ", ".join(lost[:SHOWN]) + (f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else "")
    ways = "give them a synset or hypernym, or say" if unknown == "hypernym" else "say --unknown hypernym,"
    return DataError(
        f"{len(lost)} of {count} labels have no vector: {names}",
        file=path,
        remedy=f"{ways} {'--unknown ' if unknown == 'hypernym' else ''}zero or random",
    )
