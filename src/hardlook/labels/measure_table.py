"""Facts about every measure of similarity: what it is, what it needs, and what the paper printed for it.

The published means and standard deviations are over all pairs of ImageNet-1k's labels (table 3 of "Rethinking
Evaluation Metrics of Open-Vocabulary Segmentation", 2023). Only two of them can be compared with ours: the corpora
and models behind the others are not stated.

>>> [name for name, measure in MEASURES.items() if measure.comparable]
['path', 'wup']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["wordnet", "word vectors", "text encoder", "identity"]


@dataclass(frozen=True)
class Measure:
    """One measure.

    `needs` says in words what has to be there. `source` is `file` or `folder` where one may be given; `weights` the
    name for `hardlook weights install` of what is used when none is; `extra` the package extra. `model` is the text
    encoder's name and `argument` the one of its arguments that takes the source. `mean` and `std` are published;
    `comparable` says whether ours should equal them.
    """

    name: str
    kind: Kind
    sentence: str
    needs: str = "nothing: WordNet 3.0's nouns are part of the package"
    source: Literal["", "file", "folder"] = ""
    weights: str = ""
    extra: str = ""
    model: str = ""
    argument: Literal["path", "weights"] = "path"
    mean: float | None = None
    std: float | None = None
    comparable: bool = False
    note: str = ""


_UNSTATED = "the paper does not state which vectors or model it used; shown beside ours, not to be compared"
_TREATED = "words are looked for as written, in lower case, in the singular; phrases whole, else as the mean of words"


def _encoder(name: str, model: str, sentence: str, mean: float, std: float) -> Measure:
    needs = f"a local folder of a {name} model in transformers' layout (config, weights, tokenizer)"
    return Measure(
        name, "text encoder", sentence, needs, "folder", extra="hf", model=model, mean=mean, std=std, note=_UNSTATED
    )


_ALL = (
    Measure(
        "path",
        "wordnet",
        "Path: 1 / (1 + the shortest way between two nouns in WordNet).",
        mean=0.083,
        std=0.043,
        comparable=True,
    ),
    Measure(
        "wup",
        "wordnet",
        "Wu-Palmer: how deep two nouns' lowest common hypernym lies, against their own depths.",
        mean=0.445,
        std=0.156,
        comparable=True,
    ),
    Measure(
        "lin",
        "wordnet",
        "Lin: how much of two nouns' information content their common hypernym holds.",
        mean=0.015,
        std=0.078,
        note="the paper does not state its information content; ours is from WordNet's own sense counts",
    ),
    Measure(
        "lesk",
        "wordnet",
        "Lesk: how many words two nouns' glosses share.",
        mean=0.048,
        std=0.050,
        note="the paper does not state its form of Lesk",
    ),
    Measure(
        "glove",
        "word vectors",
        f"GloVe: cosine of word vectors, negatives to 0; {_TREATED}.",
        "the installed weights glove-6b-50d, or a file of GloVe vectors",
        "file",
        weights="glove-6b-50d",
        mean=0.148,
        std=0.125,
        note=_UNSTATED,
    ),
    Measure(
        "word2vec",
        "word vectors",
        f"word2vec: cosine of word vectors, negatives to 0; {_TREATED}.",
        "a file of word2vec vectors (binary, text or safetensors)",
        "file",
        mean=0.173,
        std=0.121,
        note=_UNSTATED,
    ),
    Measure(
        "fasttext",
        "word vectors",
        f"fastText: cosine of word vectors, negatives to 0; {_TREATED}; the rest from n-grams where the file has them.",
        "a fastText model (.bin) or its vectors as text (.vec)",
        "file",
        mean=0.194,
        std=0.109,
        note=_UNSTATED,
    ),
    _encoder(
        "clip",
        "clip-text",
        "CLIP: cosine of text vectors of 'a photo of a LABEL', negatives to 0.",
        0.543,
        0.130,
    ),
    _encoder("bert", "bert", "BERT: cosine of labels' token vectors, averaged; negatives to 0.", 0.700, 0.098),
    _encoder(
        "gpt2",
        "gpt2",
        "GPT-2: cosine of labels' token vectors, averaged; negatives to 0. All labels look alike to it.",
        0.992,
        0.007,
    ),
    _encoder("t5", "t5", "T5: cosine of labels' encoder vectors, averaged; negatives to 0.", 0.346, 0.117),
    Measure(
        "sentence",
        "text encoder",
        "Sentence encoder: cosine of all-MiniLM-L6-v2's vectors of labels, negatives to 0.",
        "the installed weights all-minilm-l6-v2, or a folder with its model.safetensors and tokenizer.json",
        "folder",
        weights="all-minilm-l6-v2",
        extra="hf",
        model="minilm",
        argument="weights",
        note="not one of the paper's measures",
    ),
    Measure(
        "identity",
        "identity",
        "Identity: 1 for a label with itself, 0 for any other; gives the closed metrics.",
        "nothing",
    ),
)
MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in _ALL}
"""Every measure by name, the paper's eleven first."""
PUBLISHED: tuple[str, ...] = tuple(measure.name for measure in _ALL if measure.mean is not None)
"""The paper's eleven."""
