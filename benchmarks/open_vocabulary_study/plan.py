"""What the study trains and runs: trainings by encoder, text and split; lists of words; runs of a model on images."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ENCODERS = {"efficientnet": "efficientnet-lite0", "resnet50": "resnet50-imagenet"}
TEXTS = ("glove", "minilm")
SPLITS: dict[str, int | None] = {"all": None, "fold1": 1, "fold0": 0}
"""Folds of PASCAL-5i, whose classes do not train: most of fold 1 have a relative among the others (cat and dog, cow and
sheep, car and motorbike, chair and sofa), most of fold 0 have none (bird, boat, bottle)."""

MEASURES = ("path", "wup", "lin", "lesk", "glove", "sentence")
BACKGROUND = "background"
OTHER_WORDS = ("narrower", "synonym", "broader", "coco133")


@dataclass(frozen=True)
class Training:
    """One semantic projection."""

    encoder: str
    text: str
    split: str
    seed: int

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.encoder}-{self.text}-{self.split}-seed{self.seed}"


@dataclass(frozen=True)
class Run:
    """One model on the images of `test` (voc or coco) with the words of a list; `model` is a training or a name."""

    model: str
    test: str
    words: str

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.model}-{self.test}-{self.words}"


def list_trainings(seeds: int = 3) -> list[Training]:
    """All trainings, those that most answers need first."""
    small = [Training("efficientnet", text, split, 0) for split in SPLITS for text in TEXTS]
    large = [Training("resnet50", text, "all", 0) for text in TEXTS]
    others = [
        Training("efficientnet", text, split, seed)
        for splits in (("all", "fold1"), ("fold0",))
        for seed in range(1, seeds)
        for split in splits
        for text in TEXTS
    ]
    return [*small, *large, *others]


def list_runs(trainings: Sequence[Training], names: Iterable[str] = ("conse-glove", "deeplabv3-voc")) -> list[Run]:
    """Every model on VOC with VOC's words; models of all classes on COCO; other words with two of them."""
    first = [one for one in trainings if one.seed == 0]
    chosen = [one for one in first if (one.encoder, one.split) == ("efficientnet", "all")]
    runs = [Run(one.name, "voc", "own") for one in first]
    runs += [Run(one.name, "coco", "coco133") for one in first if one.split == "all"]
    runs += [Run(name, "coco", "own" if name == "deeplabv3-voc" else "coco133") for name in names]
    runs += [Run(one.name, "voc", words) for words in OTHER_WORDS for one in chosen]
    runs += [Run(one.name, "coco", "own") for one in chosen]
    runs += [Run(one.name, "voc", "own") for one in trainings if one.seed > 0]
    return [*runs, *(Run(one.name, "coco", "coco133") for one in trainings if one.split == "all" and one.seed > 0)]


def read_words() -> list[dict[str, str]]:
    """The rows of `words.csv`: a VOC class, its sense, and other words for it with theirs."""
    return list(csv.DictReader((HERE / "words.csv").read_text(encoding="utf-8").splitlines()))


def list_words(kind: str) -> list[tuple[str, str]]:
    """Names and senses of a list of words, the background first; row k stands for VOC's class k."""
    column, sense = ("class", "sense") if kind == "own" else (kind, f"{kind}_sense")
    return [(BACKGROUND, ""), *((row[column], row[sense]) for row in read_words())]


def write_words(kind: str, folder: Path) -> str:
    """The option `pred_labels` of a list: a file of it, or the name of a label set."""
    if kind == "coco133":
        return kind
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind}.csv"
    aliases = {"diningtable": "dining table", "pottedplant": "potted plant", "tvmonitor": "tv monitor"}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "aliases", "synset"])
        writer.writerows([name, aliases.get(name, ""), sense] for name, sense in list_words(kind))
    return str(path)
