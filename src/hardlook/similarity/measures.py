"""The similarity measures, and the similarity matrix of a label set by any of them.

>>> from hardlook.similarity.labels import Label, LabelSet
>>> pets = LabelSet("pets", "file", (Label(0, "dog", (), "dog.n.01"), Label(1, "cat", (), "cat.n.01")))
>>> result = compute_similarity(pets, "path")
>>> float(result.matrix[0, 1]), result.treated
(0.2, ())

`measures.toml` has the facts about every measure. Only two of the published means can be compared with ours: the
paper does not state the corpora and models behind the others.

>>> [name for name, measure in MEASURES.items() if measure.comparable]
['path', 'wup']
>>> sorted(MEASURES) == sorted([*PUBLISHED, "sentence", "identity"])
True
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.fingerprints import hash_data, hash_value
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.label_synsets import UnknownPolicy, assign_synsets, check_policy
from hardlook.similarity.labels import Label, LabelSet, is_void_label
from hardlook.similarity.matrix import UNKNOWN, cosine_matrix
from hardlook.similarity.pair_measures import PairSimilarity, among_rows, cosine_pairs, identity_pairs
from hardlook.similarity.wordnet.measures import DESCRIPTIONS, wordnet_pairs, wordnet_similarity
from hardlook.similarity.wordnet.nouns import load_nouns


@dataclass(frozen=True)
class Measure:
    """One measure.

    `needs` says what it requires. `source` is `file` or `folder` where one may be given; `weights` the name for
    `hardlook weights install` of the default source; `extra` the package extra. `model` is the text encoder's name
    and `argument` its argument that takes the source. `mean` and `std` are published; `comparable` says whether ours
    should equal them.
    """

    name: str
    kind: Literal["wordnet", "word vectors", "text encoder", "identity"]
    sentence: str
    needs: str
    source: Literal["", "file", "folder"] = ""
    weights: str = ""
    extra: str = ""
    model: str = ""
    argument: Literal["path", "weights"] = "path"
    mean: float | None = None
    std: float | None = None
    comparable: bool = False
    note: str = ""


def _read_measures() -> dict[str, Measure]:
    table = tomllib.loads(files("hardlook.similarity").joinpath("measures.toml").read_text(encoding="utf-8"))
    return {
        name: Measure(name=name, **{**table["kinds"][fields["kind"]], **fields})
        for name, fields in table["measures"].items()
    }


MEASURES: Mapping[str, Measure] = _read_measures()
"""Every measure by name, the paper's eleven first."""

PUBLISHED: tuple[str, ...] = tuple(name for name, measure in MEASURES.items() if measure.mean is not None)
"""The paper's eleven."""


@dataclass(frozen=True, eq=False)
class SimilarityResult:
    """A similarity matrix (K, K) float64 of K labels, and its origin.

    `matrix` is symmetric, in [0, 1], 1 on the diagonal, and read-only. `treated` holds (label, how) for every label
    that was not simply looked up. `fingerprint` is that of the files behind it.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64] = field(repr=False)
    measure: str
    description: str
    treated: tuple[tuple[str, str], ...]
    fingerprint: str


@dataclass(frozen=True, eq=False)
class PairSimilarityResult:
    """The similarity of K labels as a function of two arrays (n,) of their numbers; `treated` as in the matrix's."""

    names: tuple[str, ...]
    pairs: PairSimilarity = field(repr=False)
    treated: tuple[tuple[str, str], ...]


def find_measure(name: str) -> Measure:
    """The measure of a name; an `OptionError` that lists all names where there is none."""
    if name in MEASURES:
        return MEASURES[name]
    raise OptionError(f"there is no measure {name!r}", unit=name, remedy=f"one of {', '.join(MEASURES)}")


def compute_similarity(
    label_set: LabelSet,
    measure: str,
    *,
    source: Path | str | None = None,
    unknown: UnknownPolicy = "hypernym",
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
) -> SimilarityResult:
    """The similarity of all pairs of labels.

    `source` is the file of word vectors or the folder of the text encoder, where the measure takes one. `unknown` is
    the policy for labels that the measure does not know: `hypernym`, `zero`, `error`, or for word vectors `random`,
    drawn from `seed`. `arguments` go to the text encoder (CLIP's `template`, BERT's `pooling`). A void label
    (`background`) has similarity 0 to all others under every measure.
    """
    content = _prepare(label_set, measure, source, unknown, seed, arguments)
    matrix = np.eye(len(label_set))
    cells = np.ix_(content.rows, content.rows)
    if content.nodes is not None:
        matrix[cells] = wordnet_similarity(measure, content.nodes.tolist())
    elif content.vectors is not None:
        matrix[cells] = cosine_matrix(content.vectors)
    matrix.flags.writeable = False
    return SimilarityResult(label_set.names, matrix, measure, content.description, content.treated, content.fingerprint)


def compute_pair_similarity(
    label_set: LabelSet,
    measure: str,
    *,
    source: Path | str | None = None,
    unknown: UnknownPolicy = "hypernym",
    seed: int = 0,
) -> PairSimilarityResult:
    """The similarity of labels as a function of pairs: as `compute_similarity`, for label sets of any size.

    >>> from hardlook.similarity.labels import Label, LabelSet
    >>> pets = LabelSet("pets", "file", (Label(0, "dog", (), "dog.n.01"), Label(1, "cat", (), "cat.n.01")))
    >>> compute_pair_similarity(pets, "path").pairs(np.array([0]), np.array([1])).tolist()
    [0.2]
    """
    content = _prepare(label_set, measure, source, unknown, seed, None)
    if content.nodes is not None:
        pairs = wordnet_pairs(measure, content.nodes.tolist())
    else:
        pairs = identity_pairs() if content.vectors is None else cosine_pairs(content.vectors)
    places = np.full(len(label_set), UNKNOWN, np.int64)
    places[content.rows] = np.arange(len(content.rows))
    return PairSimilarityResult(label_set.names, among_rows(pairs, places), content.treated)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What a measure compares: the synsets or the vectors of the labels in `rows`, those that are not void."""

    rows: NDArray[np.int64]
    description: str
    fingerprint: str
    treated: tuple[tuple[str, str], ...]
    nodes: NDArray[np.int64] | None = None
    vectors: NDArray[np.floating] | None = None


def _prepare(
    label_set: LabelSet,
    measure: str,
    source: Path | str | None,
    unknown: UnknownPolicy,
    seed: int,
    arguments: Mapping[str, Any] | None,
) -> _Prepared:
    found = find_measure(measure)
    path = _check_source(found, source)
    check_policy(unknown)
    if arguments and found.kind != "text encoder":
        raise OptionError(f"the measure {measure} takes no arguments", remedy="leave them out")
    is_void = np.array([is_void_label(label) for label in label_set], np.bool_)
    rows = np.flatnonzero(~is_void)
    labels = LabelSet(label_set.name, label_set.variant, tuple(label_set.labels[row] for row in rows))
    names = label_set.names
    void = tuple((names[row], "stands for no label: similarity 0 to all others") for row in np.flatnonzero(is_void))
    if found.kind == "identity":
        return _Prepared(rows, found.sentence, hash_value("identity"), void)
    if found.kind == "wordnet":
        fingerprint = hash_data(Path(str(files("hardlook.similarity.wordnet"))) / "data")
        nodes, treated = _find_nodes(labels, unknown)
        return _Prepared(rows, DESCRIPTIONS[measure], fingerprint, (*void, *treated), nodes)
    from hardlook.similarity.label_vectors import encode_labels, load_word_vectors

    if found.kind == "word vectors":
        vectors = load_word_vectors(labels.labels, path or _find_installed(found), unknown, seed)
    else:
        given = dict(arguments or {})
        if path is not None:
            in_folder = found.argument == "weights" and path.is_dir()
            given[found.argument] = path / "model.safetensors" if in_folder else path
        vectors = encode_labels(labels.labels, found.model, given)
    description = f"{found.sentence} Source: {vectors.source}."
    return _Prepared(rows, description, vectors.fingerprint, (*void, *vectors.treated), vectors=vectors.vectors)


def similarity(
    labels: str | Path | Mapping[str, str] | Sequence[str],
    measure: str = "path",
    *,
    variant: str = "corrected",
    source: Path | str | None = None,
    unknown: UnknownPolicy = "hypernym",
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
) -> SimilarityResult:
    """The similarity of all pairs of labels: `.names`, `.matrix`, and how each label was treated.

    Args:
        labels: A shipped set (`hardlook labels list` names them), a file of labels, a mapping of names
            to WordNet senses (`{"cat": "cat.n.01"}`), or a list of names, for measures that need no sense.
        measure: A name from `hardlook similarity measures`.
        variant: Senses of a shipped set: `corrected` or `published`.
        source: Word vectors or the folder of a model, for measures that take one.
        unknown: What to do with labels that the measure does not know: `hypernym`, `zero`, `error` or `random`.
        seed: Seed of `unknown="random"`.
        arguments: For the text encoder of a measure that has one.
    """
    if isinstance(labels, str | Path):
        found = load_label_set(labels, variant)
    else:
        senses = labels if isinstance(labels, Mapping) else dict.fromkeys(labels)
        given = tuple(Label(row, name, (), sense) for row, (name, sense) in enumerate(senses.items()))
        found = LabelSet("given", "given", given)
    return compute_similarity(found, measure, source=source, unknown=unknown, seed=seed, arguments=arguments)


def list_measures() -> list[dict[str, Any]]:
    """Every measure with `state`: `ready`, `source` (a file or folder must be given) or `install`, and the commands."""
    from hardlook.extras import is_installed
    from hardlook.models.weights.install import get_weights_status

    rows = []
    for measure in MEASURES.values():
        commands = []
        modules = ("torch", "tokenizers" if measure.weights else "transformers")
        if measure.extra and not all(is_installed(module) for module in modules):
            commands.append(f'pip install "hardlook[{measure.extra}]"')
        if measure.weights and get_weights_status(measure.weights) != "installed":
            commands.append(f"hardlook weights install {measure.weights}")
        state = "install" if commands else "source" if measure.source and not measure.weights else "ready"
        rows.append({**asdict(measure), "state": state, "install": commands})
    return rows


def describe_published(measure: Measure) -> dict[str, Any] | None:
    """Mean and std that the paper prints for the measure over ImageNet-1k's labels, and what they compare with."""
    if measure.mean is None:
        return None
    comparable = "comparable with ours on ImageNet-1k's labels only"
    note = comparable if measure.comparable else f"not comparable: {measure.note}"
    return {"mean": measure.mean, "std": measure.std, "labels": "ImageNet-1k", "note": note}


def _find_nodes(labels: LabelSet, unknown: UnknownPolicy) -> tuple[NDArray[np.int64], tuple[tuple[str, str], ...]]:
    """The synset of each label, and (label, how) of those that were not simply looked up."""
    assignment = assign_synsets(labels, load_nouns(), unknown)
    treated = [
        (one.label, f"not in WordNet: stands as {one.synset}" if one.synset else "unknown: similarity 0 to all others")
        for one in assignment.treated
    ]
    treated += [(name, "its sense is proposed, not confirmed") for name in assignment.proposed]
    return assignment.nodes, tuple(treated)


def _check_source(measure: Measure, source: Path | str | None) -> Path | None:
    if source is None:
        if measure.source and not measure.weights:
            remedy = f"give {measure.needs} with --source PATH"
            raise OptionError(f"the measure {measure.name} needs a {measure.source}", unit=measure.name, remedy=remedy)
        return None
    if not measure.source:
        raise OptionError(f"the measure {measure.name} takes no source", unit=measure.name, remedy="leave it out")
    return Path(source).expanduser()


def _find_installed(measure: Measure) -> Path:
    from hardlook.models.weights.install import locate_weights

    return next(path for name, path in locate_weights(measure.weights).items() if name.endswith(".npy"))
