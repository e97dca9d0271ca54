"""The WordNet synset of every label, and the policies for labels without one. Nothing is guessed.

| policy | over WordNet |
|---|---|
| `hypernym` | the synset in the column `hypernym` is used instead, as in the paper; a label with neither is an error |
| `zero` | similarity 0 to every other label |
| `error` | stop, and list the labels with their candidates |
| `random` | for vectors only: a seeded random direction, as the paper does for unknown words |

>>> from hardlook.similarity.label_sets import load_shipped_set
>>> from hardlook.similarity.wordnet.nouns import load_nouns
>>> assignment = assign_synsets(load_shipped_set("coco80"), load_nouns())
>>> assignment.treated
(LabelTreatment(label='stop sign', how='hypernym', synset='street_sign.n.01'),)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.matrix import UNKNOWN
from hardlook.similarity.wordnet.nouns import Nouns

UnknownPolicy = Literal["hypernym", "zero", "error", "random"]

_LISTED_LABELS = 20


@dataclass(frozen=True)
class LabelTreatment:
    """How one label without a synset was treated: `hypernym` with the hypernym's name, or `zero`."""

    label: str
    how: str
    synset: str | None


@dataclass(frozen=True)
class SynsetAssignment:
    """Synset numbers `nodes` (K,), -1 for none, `below` (K,) a hypernym's; labels treated; senses only `proposed`."""

    nodes: NDArray[np.int64]
    below: NDArray[np.bool_]
    treated: tuple[LabelTreatment, ...]
    proposed: tuple[str, ...]


def assign_synsets(labels: LabelSet, nouns: Nouns, unknown: UnknownPolicy = "hypernym") -> SynsetAssignment:
    """Look up every label's synset, and treat labels without one by the policy `unknown` (see above)."""
    check_policy(unknown)
    if unknown == "random":
        remedy = "hypernym, zero or error over WordNet"
        raise OptionError("unknown=random draws vectors, which only embeddings have", remedy=remedy)
    without = [label for label in labels if label.synset is None]
    if unknown != "zero":
        _require_synsets(labels, [label for label in without if unknown == "error" or label.hypernym is None], nouns)
    used = [label.sense if unknown == "hypernym" else label.synset for label in labels]
    return SynsetAssignment(
        nodes=np.array([UNKNOWN if synset is None else nouns.index(synset) for synset in used], np.int64),
        below=np.array([label.synset is None and unknown == "hypernym" for label in labels], np.bool_),
        treated=tuple(
            LabelTreatment(label.name, unknown, label.hypernym if unknown == "hypernym" else None) for label in without
        ),
        proposed=tuple(label.name for label in labels if label.proposed),
    )


def check_policy(unknown: str) -> None:
    """An `OptionError` where there is no such policy."""
    policies = get_args(UnknownPolicy)
    if unknown not in policies:
        raise OptionError(f"unknown={unknown!r}: no such treatment", remedy=f"one of {', '.join(policies)}")


def move_below_hypernyms(path: NDArray[np.float64], below: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(K, K) path similarity with every label in `below` (K,) moved one edge under the hypernym used in its place.

    Two kinds of wall that share the node wall.n.01 then have similarity 1/3 and not 1. Zero stays zero.

    >>> move_below_hypernyms(np.ones((3, 3)), np.array([True, True, False])).round(3)
    array([[1.   , 0.333, 0.5  ],
           [0.333, 1.   , 0.5  ],
           [0.5  , 0.5  , 1.   ]])
    """
    with np.errstate(divide="ignore"):
        moved = 1.0 / (1.0 / path + below[:, None] + below[None, :])
    np.fill_diagonal(moved, 1.0)
    return moved


def _require_synsets(labels: LabelSet, without: list[Label], nouns: Nouns) -> None:
    if not without:
        return
    lines = [f"{len(without)} of {len(labels)} labels of {labels.name} ({labels.variant}) have no sense"]
    for label in without[:_LISTED_LABELS]:
        senses = ", ".join(sense.name for sense in nouns.senses(label.name)[:5]) or "not in WordNet"
        lines.append(f"    {label.name}: {senses}{f' (the file says {label.stated})' if label.stated else ''}")
    if len(without) > _LISTED_LABELS:
        lines.append(f"    and {len(without) - _LISTED_LABELS} more")
    remedy = "choose senses or hypernyms with `hardlook labels map`, or pass --unknown zero"
    raise DataError("\n".join(lines), remedy=remedy)
