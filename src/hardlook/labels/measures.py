"""The similarity matrix of a label set, by any measure: the one place that makes one.

>>> from hardlook.labels.label_set import Label, LabelSet
>>> pets = LabelSet("pets", "file", (Label(0, "dog", (), "dog.n.01"), Label(1, "cat", (), "cat.n.01")))
>>> result = similarity_of(pets, "path")
>>> float(result.matrix[0, 1]), result.treated
(0.2, ())
>>> sorted(MEASURES) == sorted([*PUBLISHED, "sentence", "identity"])
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.fingerprint import of_data, of_value
from hardlook.labels.label_set import LabelSet
from hardlook.labels.measure_table import MEASURES, PUBLISHED, Measure
from hardlook.labels.unknown import Unknown, place
from hardlook.labels.wording import has_no_meaning

__all__ = ["MEASURES", "PUBLISHED", "Measure", "SimilarityResult", "find_measure", "similarity_of"]


@dataclass(frozen=True, eq=False)
class SimilarityResult:
    """A similarity matrix (K, K) float64 of K labels, and where it comes from.

    `matrix` is symmetric, in [0, 1], 1 on the diagonal, and read-only. `treated` holds (label, how) for every label
    that was not simply looked up. `fingerprint` is that of the files behind it.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64] = field(repr=False)
    measure: str
    description: str
    treated: tuple[tuple[str, str], ...]
    fingerprint: str


def find_measure(name: str) -> Measure:
    """The measure of a name; an `OptionError` that lists them all for another."""
    if name in MEASURES:
        return MEASURES[name]
    raise OptionError(f"there is no measure {name!r}", unit=name, remedy=f"one of {', '.join(MEASURES)}")


def similarity_of(
    label_set: LabelSet,
    measure: str,
    *,
    source: Path | str | None = None,
    unknown: Unknown = "hypernym",
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
) -> SimilarityResult:
    """The similarity of all pairs of labels.

    `source` is the file of word vectors or the folder of the text encoder, where the measure takes one. `unknown`
    says what becomes of labels that the measure does not know: `hypernym`, `zero`, `error`, or for word vectors
    `random`, drawn from `seed`. `arguments` go to the text encoder (CLIP's `template`, BERT's `pooling`). A label
    that stands for no label (`background`) has similarity 0 to all others under every measure.
    """
    known = find_measure(measure)
    path = _checked_source(known, source)
    if unknown not in get_args(Unknown):
        raise OptionError(f"unknown={unknown!r}: no such treatment", remedy=f"one of {', '.join(get_args(Unknown))}")
    if arguments and known.kind != "text encoder":
        raise OptionError(f"the measure {measure} takes no arguments", remedy="leave them out")
    empty = [has_no_meaning(label) for label in label_set]
    rows = np.flatnonzero(~np.array(empty, np.bool_))
    labels = tuple(label_set.labels[row] for row in rows)
    inner, description, treated, fingerprint = _similarity(
        known, LabelSet(label_set.name, label_set.variant, labels), path, unknown, seed, arguments or {}
    )
    matrix = np.eye(len(label_set))
    matrix[np.ix_(rows, rows)] = inner
    matrix.flags.writeable = False
    none = [label.name for label, is_empty in zip(label_set, empty, strict=True) if is_empty]
    nothing = [(name, "stands for no label: similarity 0 to all others") for name in none]
    return SimilarityResult(label_set.names, matrix, measure, description, (*nothing, *treated), fingerprint)


Made = tuple[NDArray[np.float64], str, tuple[tuple[str, str], ...], str]


def _similarity(
    measure: Measure, labels: LabelSet, path: Path | None, unknown: Unknown, seed: int, arguments: Mapping[str, Any]
) -> Made:
    if measure.kind == "identity":
        return np.eye(len(labels)), measure.sentence, (), of_value("identity")
    if measure.kind == "wordnet":
        return _by_wordnet(measure, labels, unknown)
    from hardlook.labels.embeddings import from_text_encoder, from_word_vectors
    from hardlook.similarity.cosine import cosine_matrix

    if measure.kind == "word vectors":
        found = from_word_vectors(labels.labels, path or _installed(measure), unknown, seed)
    else:
        given: dict[str, Any] = dict(arguments)
        if path is not None:
            given[measure.argument] = _weights(path) if measure.argument == "weights" else path
        found = from_text_encoder(labels.labels, measure.model, given)
    matrix = cosine_matrix(found.vectors)
    return matrix, f"{measure.sentence} Source: {found.source}.", found.treated, found.fingerprint


def _by_wordnet(measure: Measure, labels: LabelSet, unknown: Unknown) -> Made:
    import hardlook.wordnet
    from hardlook.wordnet.measures import describe, wordnet_similarity
    from hardlook.wordnet.nouns import load_nouns

    placement = place(labels, load_nouns(), unknown)
    treated = [
        (one.label, f"not in WordNet: stands as {one.synset}" if one.synset else "unknown: similarity 0 to all others")
        for one in placement.treated
    ]
    treated += [(name, "its sense is proposed, not confirmed") for name in placement.proposed]
    data = of_data(Path(hardlook.wordnet.__file__).parent / "data")
    matrix = wordnet_similarity(measure.name, placement.nodes.tolist())
    return matrix, describe(measure.name), tuple(treated), data


def _checked_source(measure: Measure, source: Path | str | None) -> Path | None:
    if source is None:
        if measure.source and not measure.weights:
            raise OptionError(
                f"the measure {measure.name} needs a {measure.source}",
                unit=measure.name,
                remedy=f"give {measure.needs} with --source PATH",
            )
        return None
    if not measure.source:
        raise OptionError(f"the measure {measure.name} takes no source", unit=measure.name, remedy="leave it out")
    return Path(source).expanduser()


def _installed(measure: Measure) -> Path:
    from hardlook.models.weights.install import where

    return next(path for name, path in where(measure.weights).items() if name.endswith(".npy"))


def _weights(path: Path) -> Path:
    return path / "model.safetensors" if path.is_dir() else path
