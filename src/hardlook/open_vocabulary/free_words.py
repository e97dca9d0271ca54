r"""Free words in records: the phrases of an image as its classes, and the classes of all images as one vocabulary.

A record of a run with free words lists the truth's labels and then the classes that its own image says, by name. A
class is a noun in one sense (`heron (heron.n.02)`), or a label of the truth, where the noun is its name. Scores need
one list: the truth's labels, then the classes of all images by name. A class whose sense is that of a label of the
truth counts as this label (`merge_label_senses`), so that `automobile` is `car` and neither gains nor loses by it. The
other classes are compared with the labels, and enter no mean over classes.

>>> words = name_phrases(("cat", "sky"), ["the sky", "a heron", "dgo", "cats"], [0, 1, 3], "context")
>>> words.names, words.table.tolist()
(('cat', 'sky', 'heron (heron.n.02)'), [1, 2, -1, 0])
>>> words.lines.split("\n")
['a heron\theron (heron.n.02)\tonly', 'cats\tcat\tlabel', 'the sky\tsky\tlabel']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import ScoreMeaning, Unit
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.sections import Section, Table
from hardlook.models.answer_checks import has_free_words
from hardlook.open_vocabulary.label_similarity import merge_label_senses
from hardlook.open_vocabulary.options import SimilarityOptions
from hardlook.open_vocabulary.record_columns import read_label_names
from hardlook.open_vocabulary.vocabulary import join_labels, join_run_labels
from hardlook.similarity.free_words.phrases import (
    RULES,
    UNKNOWN_RULES,
    PhraseSense,
    SenseChoice,
    check_known,
    make_class_name,
    map_phrases,
    parse_class_name,
    suggest,
)
from hardlook.similarity.labels import LabelSet

if TYPE_CHECKING:
    import polars as pl

SAID = ScoreMeaning("said-in", "said in", "images that say a word which counts as a label, by its sense", ranked=False)
MAX_ROWS = 200
_MAX_PHRASE = 120


@dataclass(frozen=True)
class ImageWords:
    """The classes of an image: the truth's labels, then those that are said, by name.

    `table` (P,) int32 has the place of each phrase in `names`, -1 for one that is not used; `lines` is the record's
    column `phrases`: phrase, class and rule, tabs between.
    """

    names: tuple[str, ...]
    table: NDArray[np.int32]
    lines: str


def name_phrases(
    truth: Sequence[str],
    phrases: Sequence[str],
    used: Iterable[int],
    senses: SenseChoice,
    stuff: Sequence[bool] = (),
) -> ImageWords:
    """The classes that the phrases of an image stand for; those that are not `used` neither count nor give context.

    `stuff` says which phrases are not countable; a noun that is said both ways makes two classes.
    """
    places = sorted({int(place) for place in used})
    found = map_phrases([phrases[place] for place in places], truth, senses)
    said = [_name_class(one, bool(stuff) and stuff[place]) for one, place in zip(found, places, strict=True)]
    order = sorted(range(len(said)), key=lambda row: said[row])
    names, joined = join_labels(truth, [said[row] for row in order])
    table = np.full(len(phrases), -1, np.int32)
    table[[places[row] for row in order]] = joined
    lines = {f"{_clean(one.phrase)}\t{name}\t{one.rule}" for one, name in zip(found, said, strict=True)}
    return ImageWords(names, table, "\n".join(sorted(lines)))


def _name_class(one: PhraseSense, is_stuff: bool) -> str:
    parsed = parse_class_name(one.class_name)
    if one.label is not None or parsed is None or not is_stuff:
        return one.class_name
    return make_class_name(parsed.noun, parsed.synset, is_stuff=True)


def _clean(phrase: str) -> str:
    words = " ".join("".join(c if c.isprintable() else " " for c in phrase[: 2 * _MAX_PHRASE]).split())
    return words if len(words) <= _MAX_PHRASE else f"{words[: _MAX_PHRASE - 1]}…"


def check_words(units: Sequence[Unit], model: Any, show_progress: object = None) -> None:
    """An `OptionError` for a model with words of its own where the units expect labels; as a benchmark's `setup` too.

    The payloads have `pred_senses`; `model` is None for stored predictions.
    """
    if units and units[0].payload.pred_senses is None and has_free_words(model):
        remedy = "run open-miou, open-ap or open-pq with --pred-words free"
        raise OptionError("the model answers in words of its own choosing, and this run expects labels", remedy=remedy)


def check_truth_names(names: Iterable[str]) -> None:
    """A `DataError` for a label of the truth that reads like a class of free words."""
    for name in names:
        if parse_class_name(name) is not None:
            what = f"the label {name!r} is written as free words are: a noun and its sense in brackets"
            raise DataError(what, remedy="rename it, or leave out --pred-words free")


def join_image_names(records: pl.DataFrame) -> tuple[tuple[str, ...], list[NDArray[np.int64]]] | None:
    """One list of names for records that have lists of their own, and a table per row; None where all are equal."""
    texts = records["names"].to_list()
    distinct = sorted(set(texts))
    if len(distinct) < 2:
        return None
    lists = [text.split("\n") for text in distinct]
    names, tables = join_run_labels(lists, [count_truth(names) for names in lists])
    by_text = dict(zip(distinct, tables, strict=True))
    return names, [by_text[text] for text in texts]


def count_truth(names: Sequence[str]) -> int:
    """How many of a record's names are labels of the truth; they come first.

    >>> count_truth(["cat", "sky", "heron (heron.n.02)"])
    2
    """
    return next((place for place, name in enumerate(names) if parse_class_name(name) is not None), len(names))


class MergeClasses(Protocol):
    """How the records of a metric merge classes."""

    def __call__(self, records: pl.DataFrame, table: NDArray[np.int64], *, keep: bool) -> pl.DataFrame:
        """The records with class k counted as class `table[k]`; with `keep`, merged classes stay in their names."""


def merge_words(
    records: pl.DataFrame,
    options: SimilarityOptions,
    merge_classes: MergeClasses,
    *,
    keep: bool,
    own: LabelSet | None = None,
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Records of one vocabulary, free words with a label's sense counted as the label; and these words, by name.

    `own` are the labels with the senses that the data states.
    """
    names = read_label_names(records)
    if count_truth(names) == len(names):
        return records, {}
    table = merge_label_senses(names, options, own)
    merged = {names[row]: names[table[row]] for row in np.flatnonzero(table != np.arange(len(names))).tolist()}
    return merge_classes(records, table, keep=keep), merged


def merge_named_words(records: pl.DataFrame, merged: Mapping[str, str], merge_classes: MergeClasses) -> pl.DataFrame:
    """Records of one vocabulary, the classes of free words in `merged` counted as the labels that it names."""
    names = read_label_names(records)
    return merge_classes(records, np.array([names.index(merged.get(name, name)) for name in names]), keep=True)


def find_labels_of_truth(names: Sequence[str]) -> NDArray[np.bool_]:
    """(K,) which names are labels and no free words; only these are classes of a mean.

    Else every further word that a model says would divide the mean.
    """
    return np.array([parse_class_name(name) is None for name in names], np.bool_)


def is_countable(name: str) -> bool:
    """Whether a class of free words is a thing; `, stuff` in its name says that it is not."""
    parsed = parse_class_name(name)
    return parsed is None or not parsed.is_stuff


def flatten_tables(
    tables: Sequence[NDArray[np.int64]], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tables one after another, and for each of `lengths[row]` values of a row where its table begins.

    >>> flat, start = flatten_tables([np.array([0, 2]), np.array([0, 1, 3])], np.array([1, 2]))
    >>> flat[start + [1, 0, 2]].tolist()
    [2, 0, 3]
    """
    begins = np.cumsum([0, *(len(table) for table in tables[:-1])])
    return np.concatenate(tables), np.repeat(begins, lengths)


def read_said(records: pl.DataFrame) -> Counter[tuple[str, str, str]]:
    """How many images say each (phrase, class, rule)."""
    if "phrases" not in records.columns:
        return Counter()
    return Counter(tuple(line.split("\t")) for text in records["phrases"] for line in text.split("\n") if line)


def note_words(records: pl.DataFrame, merged: Mapping[str, str]) -> tuple[LeftOut, ...]:
    """What the report says of free words: how many there are, which count as labels, and which have no sense.

    An error where most have none. `merged` are the classes that count as a label, by their sense.
    """
    said = read_said(records)
    senses = [PhraseSense(phrase, "", None, rule) for phrase, _, rule in said]
    check_known(senses)
    classes = {name for _, name, _ in said}
    labels = {name for name in classes if parse_class_name(name) is None}
    others = {name for name in classes if name not in labels and name not in merged}
    phrases = {phrase for phrase, _, _ in said}
    counted = {phrase for phrase, name, _ in said if name in labels or name in merged}
    unknown = sorted({phrase for phrase, _, rule in said if rule in UNKNOWN_RULES})
    listed = tuple(
        f"{phrase or '(empty)'}{f' ({near}?)' if (near := suggest(phrase)) else ''}" for phrase in unknown[:5]
    )
    vanilla = f"{len(counted)} of {len(phrases)} are a label by name or sense, and only these count in vanilla scores"
    outside = "their false positives belong to no class of the truth; they cost what they cover"
    notes = [
        LeftOut("different phrases in free words", len(phrases), vanilla, kept=True),
        LeftOut("senses that no label has", len(others), outside, tuple(sorted(others)[:5]), kept=True),
        LeftOut("phrases without a sense", len(unknown), "similarity 0 to every label", listed, kept=True),
    ]
    return tuple(note for note in notes if note.count)


def score_said(records: pl.DataFrame, merged: Mapping[str, str]) -> list[Score]:
    """For each class that counts as a label by its sense, the number of images that say it."""
    images: Counter[str] = Counter()
    for text in records["phrases"] if merged else ():
        images.update({line.split("\t")[1] for line in text.split("\n") if line})
    return [
        Score(SAID.name, float(images[name]), len(records), slice={"said": name, "label": label})
        for name, label in sorted(merged.items())
    ]


def read_merged(scorecard: Scorecard) -> dict[str, str]:
    """The classes that count as a label, as `score_said` stored them."""
    return {score.slice["said"]: score.slice["label"] for score in scorecard.scores if score.name == SAID.name}


def build_words_section(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """What each phrase was taken for; None where predictions have labels."""
    said, merged = read_said(records), read_merged(scorecard)
    if not said:
        return None
    rows = [
        (phrase or "(empty)", name, merged.get(name, name if parse_class_name(name) is None else ""), rule, images)
        for (phrase, name, rule), images in sorted(said.items(), key=lambda item: (-item[1], item[0]))
    ]
    table = Table(
        "What each phrase was taken for",
        f"The {MAX_ROWS} phrases that most images say. " if len(rows) > MAX_ROWS else "",
        ("phrase", "noun and sense", "counts as the label", "rule", "images"),
        rows[:MAX_ROWS],
    )
    unknown = [(phrase, suggest(phrase) or "", images) for phrase, _, _, rule, images in rows if rule in UNKNOWN_RULES]
    columns = ("phrase", "spelled like", "images")
    caption = "Nothing is corrected: their similarity to every label is 0."
    tables = (table, Table("Phrases without a sense", caption, columns, unknown[:MAX_ROWS])) if unknown else (table,)
    used = {rule for _, _, _, rule, _ in rows}
    rules = "; ".join(f"{rule}: {meaning}" for rule, meaning in RULES.items() if rule in used)
    text = (
        "A phrase counts as a label where its noun is the label's name or its sense is the label's; vanilla scores "
        "count only these. Other words count by their similarity, and are no classes of a mean."
    )
    return Section("Free words", f"{text} Rules: {rules}.", tables)
