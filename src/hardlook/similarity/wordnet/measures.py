"""Similarity of noun synsets by WordNet: path, Wu-Palmer, Lin and Lesk.

>>> from hardlook.similarity.wordnet.nouns import load_nouns
>>> nodes = [load_nouns().index(name) for name in ("dog.n.01", "cat.n.01")]
>>> {measure: round(float(wordnet_similarity(measure, nodes)[0, 1]), 3) for measure in ("path", "wup")}
{'path': 0.2, 'wup': 0.857}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.similarity.graph_measures import (
    information_content,
    lesk_matrix,
    lin_matrix,
    path_matrix,
    wu_palmer_matrix,
)
from hardlook.similarity.matrix import UNKNOWN
from hardlook.similarity.pair_measures import PairSimilarity, lesk_pairs, lin_pairs, path_pairs, wu_palmer_pairs
from hardlook.similarity.wordnet.nouns import Nouns, load_nouns

# Function words; two glosses that share only these share nothing.
STOP_WORDS = frozenset(
    "about above after against all along also among an and another any are around as at away be because been before "
    "being below between both but by can cannot could did do does done down during each either etc every few for from "
    "had has have having he her him his how if in into is it its itself less like made make makes making many may more "
    "most much must near no nor not of off often on one only onto or other others out over own per she should so some "
    "such than that the their them then there these they this those through thus to too toward towards under until up "
    "upon used uses using usually very was were what when where which while who whom whose will with within without "
    "would you your".split()
)

# What each measure is and where its numbers come from, in one or two sentences for a report.
DESCRIPTIONS = {
    "path": (
        "Path: 1 / (1 + d), d the edges on the shortest way through common hypernyms (instance hypernyms included) in "
        "WordNet 3.0's nouns."
    ),
    "wup": (
        "Wu-Palmer: twice the depth of the lowest common hypernym over the depths of both nouns through it, in WordNet "
        "3.0, with nltk's depths and ties; 1 on the diagonal."
    ),
    "lin": (
        "Lin: twice the information content of the most informative common hypernym over the sum of both nouns'. The "
        "information content is from WordNet 3.0's own sense counts (the tagged occurrences of its semantic "
        "concordances, each passed on to all hypernyms), with 1 added to every synset; no other corpus."
    ),
    "lesk": (
        "Lesk: Dice's overlap of the words in two entries; an entry is the synset's own words, its definition and its "
        "direct hypernyms' definitions in WordNet 3.0, without examples and function words."
    ),
}
WORDNET_MEASURES = tuple(DESCRIPTIONS)


def wordnet_similarity(measure: str, nodes: Sequence[int]) -> NDArray[np.float64]:
    """(K, K) similarity of K noun synsets, given by their numbers, in [0, 1]; `measure` is one of WORDNET_MEASURES.

    The node -1 is a label without a synset: 0 with every other label. The diagonal is 1.

    >>> wordnet_similarity("lesk", [0, -1]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    nouns = _check_measure(measure)
    if measure == "path":
        return path_matrix(nouns.graph, nodes)
    if measure == "wup":
        return wu_palmer_matrix(nouns.graph, nodes, tie_rank=nouns.name_rank)
    if measure == "lin":
        return lin_matrix(nouns.graph, nodes, noun_information_content())
    return lesk_matrix(_list_words(nodes))


def wordnet_pairs(measure: str, nodes: Sequence[int]) -> PairSimilarity:
    """The similarity of listed pairs of K noun synsets: the cells of `wordnet_similarity` without the matrix.

    >>> dog, cat = (load_nouns().index(name) for name in ("dog.n.01", "cat.n.01"))
    >>> wordnet_pairs("path", [dog, cat, -1])(np.array([0, 0]), np.array([1, 2])).tolist()
    [0.2, 0.0]
    """
    nouns = _check_measure(measure)
    if measure == "path":
        return path_pairs(nouns.graph, nodes)
    if measure == "wup":
        return wu_palmer_pairs(nouns.graph, nodes, tie_rank=nouns.name_rank)
    if measure == "lin":
        return lin_pairs(nouns.graph, nodes, noun_information_content())
    return lesk_pairs(_list_words(nodes))


def _check_measure(measure: str) -> Nouns:
    """The nouns, where there is such a measure."""
    if measure not in WORDNET_MEASURES:
        remedy = f"choose one of {', '.join(WORDNET_MEASURES)}"
        raise OptionError(f"no WordNet measure {measure!r}", unit=measure, remedy=remedy)
    return load_nouns()


def _list_words(nodes: Sequence[int]) -> list[tuple[str, ...]]:
    return [() if node == UNKNOWN else gloss_words(int(node)) for node in nodes]


@cache
def noun_information_content() -> NDArray[np.float64]:
    """(n,) information content in nats of every noun synset, from WordNet's sense counts, 1 added to each."""
    nouns = load_nouns()
    content = information_content(nouns.graph, nouns.counts, smoothing=1.0)
    content.flags.writeable = False
    return content


def gloss_words(index: int) -> tuple[str, ...]:
    """The words of a synset's entry for Lesk, each once, in order of appearance.

    The entry is the synset's lemmas, its definition, and the definitions of its direct hypernyms. A definition is a
    gloss without its examples in quotation marks. Words are runs of the letters a-z in the lower-case text, of at
    least two letters, without STOP_WORDS.

    >>> gloss_words(load_nouns().index("physical_entity.n.01"))
    ('physical', 'entity', 'existence', 'perceived', 'known', 'inferred', 'distinct', 'living', 'nonliving')
    """
    nouns = load_nouns()
    texts = [" ".join(nouns.lemmas(index)), nouns.gloss(index)]
    texts += [nouns.gloss(int(above)) for above in nouns.graph.hypernyms(index)]
    plain = re.sub(r'"[^"]*"', " ", " ; ".join(texts)).lower()
    return tuple(dict.fromkeys(word for word in re.findall("[a-z]{2,}", plain) if word not in STOP_WORDS))
