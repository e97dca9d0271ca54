"""What becomes of a label without a sense of its own; nothing is guessed, everything is counted.

| treatment | over WordNet |
|---|---|
| `hypernym` | the synset in the column `hypernym` takes its place, as in the paper; a label with neither is an error |
| `zero` | similarity 0 to every other label |
| `error` | stop, and list the labels with their candidates |
| `random` | for embeddings only: a seeded random vector (`random_vector`), the paper's way with words they lack |

>>> from hardlook.labels.shipped import read_shipped
>>> from hardlook.wordnet import load_nouns
>>> placement = place(read_shipped("coco80"), load_nouns())
>>> placement.treated
(Treatment(label='stop sign', how='hypernym', synset='street_sign.n.01'),)
>>> placement.counts
{'synset': 79, 'hypernym': 1, 'zero': 0, 'proposed': 0}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.labels.label_set import Label, LabelSet
from hardlook.randomness import generator
from hardlook.wordnet.nouns import Nouns

Unknown = Literal["hypernym", "zero", "error", "random"]
NOWHERE = -1


@dataclass(frozen=True)
class Treatment:
    """How one label without a sense of its own was treated: `hypernym` with the stand-in's name, or `zero`."""

    label: str
    how: str
    synset: str | None


@dataclass(frozen=True)
class Placement:
    """Where the K labels of a set lie in WordNet, and what was done about those that it does not have.

    `nodes` (K,) int64: synset numbers, -1 for nowhere. `below` (K,) bool: the node is the label's hypernym, not its
    own sense. `proposed`: labels whose sense nobody has confirmed.
    """

    nodes: NDArray[np.int64]
    below: NDArray[np.bool_]
    treated: tuple[Treatment, ...]
    proposed: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many labels have a sense, a hypernym's, none; and how many senses are only proposed."""
        how = [treatment.how for treatment in self.treated]
        own = len(self.nodes) - len(how)
        return {
            "synset": own,
            "hypernym": how.count("hypernym"),
            "zero": how.count("zero"),
            "proposed": len(self.proposed),
        }


def place(labels: LabelSet, nouns: Nouns, unknown: Unknown = "hypernym") -> Placement:
    """Find every label's synset, and treat the labels without one as `unknown` says (see above)."""
    if unknown not in get_args(Unknown):
        raise OptionError(f"unknown={unknown!r}: no such treatment", remedy=f"one of {', '.join(get_args(Unknown))}")
    if unknown == "random":
        remedy = "hypernym, zero or error over WordNet"
        raise OptionError("unknown=random draws vectors, which only embeddings have", remedy=remedy)
    without = [label for label in labels if label.synset is None]
    if unknown == "hypernym":
        _refuse(labels, [label for label in without if label.hypernym is None], nouns)
    if unknown == "error":
        _refuse(labels, without, nouns)
    below = np.array([label.synset is None and unknown == "hypernym" for label in labels], np.bool_)
    nodes = [_node(label, nouns, allow_hypernym=unknown == "hypernym") for label in labels]
    treated = [Treatment(label.name, unknown, label.hypernym if unknown == "hypernym" else None) for label in without]
    proposed = tuple(label.name for label in labels if label.proposed)
    return Placement(np.array(nodes, np.int64), below, tuple(treated), proposed)


def one_edge_below(path: NDArray[np.float64], below: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(K, K) path similarity with every label in `below` (K,) moved one edge under the node that stands in for it.

    Two kinds of wall that share the node wall.n.01 then have similarity 1/3 and not 1. Zero stays zero.

    >>> one_edge_below(np.ones((3, 3)), np.array([True, True, False])).round(3)
    array([[1.   , 0.333, 0.5  ],
           [0.333, 1.   , 0.5  ],
           [0.5  , 0.5  , 1.   ]])
    """
    with np.errstate(divide="ignore"):
        moved = 1.0 / (1.0 / path + below[:, None] + below[None, :])
    np.fill_diagonal(moved, 1.0)
    return moved


def random_vector(name: str, dimensions: int, seed: int = 0) -> NDArray[np.float64]:
    """(dimensions,) a random direction of length 1 for a word that an embedding lacks; the same for equal arguments.

    >>> float(random_vector("wakeboard", 50) @ random_vector("wakeboard", 50)).__round__(6)
    1.0
    """
    drawn = generator(seed, "label", name).standard_normal(dimensions)
    return np.asarray(drawn / np.linalg.norm(drawn))


def _node(label: Label, nouns: Nouns, *, allow_hypernym: bool) -> int:
    synset = label.synset or (label.hypernym if allow_hypernym else None)
    return NOWHERE if synset is None else nouns.index(synset)


def _refuse(labels: LabelSet, without: list[Label], nouns: Nouns) -> None:
    if not without:
        return
    lines = [f"{len(without)} of {len(labels)} labels of {labels.name} ({labels.variant}) have no sense"]
    for label in without[:20]:
        senses = ", ".join(sense.name for sense in nouns.senses(label.name)[:5]) or "not in WordNet"
        lines.append(f"    {label.name}: {senses}{f' (the file says {label.stated})' if label.stated else ''}")
    if len(without) > 20:
        lines.append(f"    and {len(without) - 20} more")
    remedy = "choose senses or hypernyms with `hardlook labels map`, or treat them with --unknown zero"
    raise DataError("\n".join(lines), remedy=remedy)
