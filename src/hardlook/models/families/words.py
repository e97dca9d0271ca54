"""Words for models with an open vocabulary: the labels they choose from, and the prompts made of them.

Labels are given as words with commas between, as the name of a shipped label set (`hardlook labels list`), or as a
file: text with one label per line (further words after a comma are synonyms), CSV or TSV with a column `name`, or JSON
with a list of names or of objects with `name`.

>>> words = read_words(("cat", "traffic_light"))
>>> words.labels, words.make_prompts(("a photo of a {label}", "{label}"))
(('cat', 'traffic_light'), [['a photo of a cat', 'cat'], ['a photo of a traffic light', 'traffic light']])
>>> read_words(("coco133",)).texts[119]
'sky'
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, OptionError
from hardlook.reading import read_json, reading

TEMPLATES = ("a photo of a {label}",)
"""The prompt of CLIP's authors for a bare label."""

_REMEDY = "--model-arg labels=cat,dog,... or a file of labels, or the name of a label set (hardlook labels list)"


@dataclass(frozen=True)
class Word:
    """A label, the text that stands for it in prompts, whether it is countable, if known, and its synonyms."""

    label: str
    text: str
    is_thing: bool | None = None
    synonyms: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The text and what else the label is called, none of it twice."""
        return tuple(dict.fromkeys((self.text, *(word.replace("_", " ") for word in self.synonyms))))


@dataclass(frozen=True)
class Words:
    """The labels a model chooses from, in order, and the files they were read from."""

    words: tuple[Word, ...]
    source_files: tuple[Path, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, as answers name them."""
        return tuple(word.label for word in self.words)

    @property
    def texts(self) -> tuple[str, ...]:
        """What stands for each label in a prompt: `sky` for COCO's `sky-other-merged`."""
        return tuple(word.text for word in self.words)

    def make_prompts(self, templates: Sequence[str]) -> list[list[str]]:
        """One list per label: its text in each template, at `{label}`."""
        return [[template.replace("{label}", text) for template in templates] for text in self.texts]


def read_words(given: Sequence[str] | str) -> Words:
    """The labels as they were given: words, one label set, or one file."""
    if isinstance(given, str):
        given = [word.strip() for word in given.split(",") if word.strip()]
    if not given:
        raise OptionError("a model with an open vocabulary needs the words it chooses from", remedy=_REMEDY)
    if len(given) == 1 and (path := Path(given[0]).expanduser()).is_file():
        words = Words(tuple(_read_file(path)), (path,))
    elif len(given) == 1 and (rows := _read_shipped(given[0])) is not None:
        words = Words(tuple(_make_word(row) for row in rows))
    elif len(given) == 1 and Path(given[0]).suffix in (".txt", ".csv", ".tsv", ".json"):
        raise DataError("there is no such file of labels", file=given[0], remedy=_REMEDY)
    else:
        words = Words(tuple(_make_word({"name": word}) for word in given))
    if not words.words or not all(word.label for word in words.words):
        raise OptionError("a label is empty, or there are none", remedy=_REMEDY)
    if duplicate := _find_duplicate(words.labels):
        raise OptionError(
            f"two labels are called {duplicate!r}: case, spaces, _ and - do not count", remedy="keep one of them"
        )
    return words


def read_templates(given: Sequence[str]) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Prompt templates as they were given, or one per line of a file; and the file.

    >>> read_templates(("a photo",))
    Traceback (most recent call last):
    ...
    hardlook.errors.OptionError: the template 'a photo' has no {label}
      remedy: write {label} where the label goes, as in 'a photo of a {label}'
    """
    read_from: tuple[Path, ...] = ()
    templates = tuple(given)
    if len(templates) == 1 and (path := Path(templates[0]).expanduser()).is_file():
        with reading(path, "not a file of templates", remedy="write one template per line, in UTF-8"):
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        templates, read_from = tuple(line.strip() for line in lines if line.strip()), (path,)
    remedy = f"write {{label}} where the label goes, as in {TEMPLATES[0]!r}"
    if not templates:
        raise OptionError("there are no prompt templates", remedy=remedy)
    for template in templates:
        if "{label}" not in template:
            raise OptionError(f"the template {template!r} has no {{label}}", remedy=remedy)
    return templates, read_from


def choose_things(labels: Sequence[str], given: Sequence[str]) -> tuple[bool, ...]:
    """Which labels are countable: those that `given` names, or as the shipped label set says that has all labels.

    `given` are names, a file, or a label set; of the latter two, the countable ones.
    """
    remedy = "--model-arg things=NAME,NAME,... of the countable labels, or a label set such as things=coco133"
    if given:
        words = read_words(given)
        marked = [word for word in words.words if word.is_thing is not None]
        things = {normalise_name(word.label) for word in (marked or words.words) if word.is_thing is not False}
        if unknown := sorted(things - {normalise_name(label) for label in labels}):
            raise OptionError(f"the countable label {unknown[0]!r} is not a label of the model", remedy=remedy)
        return tuple(normalise_name(label) in things for label in labels)
    for name in ("coco133", "ade150", "cityscapes19", "coco80"):
        kinds = {
            normalise_name(called): row["isthing"] == "1"
            for row in _read_shipped(name) or ()
            for called in (row["name"], *row["aliases"].split("|"))
        }
        # Published configurations write synonyms behind a comma ("building, edifice").
        firsts = [normalise_name(label.split(",")[0]) for label in labels]
        if all(first in kinds for first in firsts):
            return tuple(kinds[first] for first in firsts)
    raise OptionError("which labels of the model are countable is not known", remedy=remedy)


def _read_shipped(name: str) -> list[dict[str, str]] | None:
    """Rows of a shipped label set; None where there is no set of that name."""
    if not re.fullmatch(r"[a-z]+\d+", name):
        return None
    table = files("hardlook").joinpath("similarity", "tables", f"{name}.csv")
    return list(csv.DictReader(table.read_text(encoding="utf-8").splitlines())) if table.is_file() else None


def _read_file(path: Path) -> Iterable[Word]:
    with reading(path, "not a file of labels", remedy="write one label per line, in UTF-8"):
        suffix = path.suffix.lower()
        if suffix == ".json":
            content = read_json(path, what="not a file of labels", remedy=_REMEDY)
            if isinstance(content, Mapping):
                content = content.get("categories", content.get("labels", list(content.values())))
            return _split_synonyms([row if isinstance(row, Mapping) else {"name": row} for row in content])
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith("#")]
        if suffix in (".csv", ".tsv"):
            return [_make_word(row) for row in csv.DictReader(lines, delimiter="\t" if suffix == ".tsv" else ",")]
        return _split_synonyms({"name": re.sub(r"^\s*\d+\s*[:\t,]\s*(?=\S)", "", line)} for line in lines)


def _split_synonyms(rows: Iterable[Mapping[str, Any]]) -> list[Word]:
    """Words whose names have their synonyms behind commas, read as `hardlook.similarity.label_files` reads them.

    >>> [(word.label, word.synonyms) for word in _split_synonyms([{"name": "cat, kitten"}, {"name": "sky"}])]
    [('cat', ('kitten',)), ('sky', ())]
    """
    kept = list(rows)
    parts = [[part.strip() for part in re.split(r"[,;]", str(row["name"])) if part.strip()] or [""] for row in kept]
    # Where several labels begin with the same word, the whole text is the name.
    firsts = Counter(normalise_name(first) for first, *_ in parts)
    words = []
    for row, (first, *others) in zip(kept, parts, strict=True):
        if not row.get("aliases"):
            name = first if firsts[normalise_name(first)] == 1 else ", ".join((first, *others))
            row = {**row, "name": name, "aliases": "|".join(others)}
        words.append(_make_word(row))
    return words


def _make_word(row: Mapping[str, Any]) -> Word:
    label = str(row["name"]).strip()
    aliases = row.get("aliases") or ""
    synonyms = [part.strip() for part in (aliases.split("|") if isinstance(aliases, str) else aliases)]
    # COCO writes stuff with a hyphen and no space (sky-other-merged), and VOC words together (diningtable).
    written_together = [word for word in synonyms if normalise_name(word) == normalise_name(label) and " " in word]
    merged = "-" in label and " " not in label and synonyms and synonyms[0]
    text = written_together[0] if written_together else synonyms[0] if merged else label
    kinds = {True: ("1", "true", "yes", "thing"), False: ("0", "false", "no", "stuff")}
    thing = next((kind for kind, said in kinds.items() if str(row.get("isthing", "")).lower() in said), None)
    return Word(label, text.replace("_", " "), thing, tuple(word for word in synonyms if word))


def normalise_name(name: str) -> str:
    """A name for comparisons: case, spaces, _ and - do not count.

    >>> normalise_name("Traffic_Light")
    'trafficlight'
    """
    return re.sub(r"[\s_-]+", "", name).casefold()


def _find_duplicate(labels: Sequence[str]) -> str:
    seen: set[str] = set()
    for label in labels:
        if normalise_name(label) in seen:
            return label
        seen.add(normalise_name(label))
    return ""
