"""Phrases that a model says in words of its own choosing, mapped to noun senses of WordNet 3.0.

>>> for one in map_phrases(["A red car", "two mice", "glass of wine", "slice of pizza", "man with a hat", "a dgo"]):
...     print(f"{one.phrase}: {one.noun or '-'}, {one.synset}, {one.rule}")
A red car: car, car.n.01, usual
two mice: mouse, mouse.n.04, usual
glass of wine: glass, glass.n.02, usual
slice of pizza: pizza, pizza.n.01, only
man with a hat: man, man.n.01, usual
a dgo: -, None, unknown

The noun: the longest sequence of words that ends at the head of the phrase and is a noun of WordNet, a name in the
shipped label tables (`potted plant`) or a label of the data.
The head is the last word before a preposition, a verb, a number at the end or a second article. Plurals stand for
their singular. In `X of Y` and `Y's X` the noun is X, but Y after a word for a part, a number or a picture (`slice of`,
`photo of`).

The sense: of those that can be seen (what a label of the shipped tables means counts as such; proper names, acts and
other abstractions only where nothing else is left), the usual one is that of the shipped label tables, else the most
frequent in WordNet. Another sense takes its place where one of the image's other nouns, in its usual sense, says so:
Lin similarity of .55 or more to it, while none has .35 to the usual sense. A sense that tagged texts use less than a
tenth as often as the usual one never does.

>>> [one.synset for one in map_phrases(["a crane", "herons"])], [one.rule for one in map_phrases(["a crane", "herons"])]
(['crane.n.05', 'heron.n.02'], ['context', 'only'])

The result for an image depends on the set of its phrases alone, not on their order, other images or the truth.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.similarity.label_sets import list_label_sets, load_label_set
from hardlook.similarity.labels import normalise_name
from hardlook.similarity.wordnet.measures import noun_information_content
from hardlook.similarity.wordnet.nouns import Sense, load_nouns

SenseChoice = Literal["context", "first"]

Uses = tuple[int, int]
"""How many labels of the shipped tables a word names, and of how many it is an alias: any of the first count more."""
NO_USES: Uses = (0, 0)

RULES = {
    "label": "the noun is the name of a label of the data",
    "only": "the noun has one sense that can be seen",
    "usual": "the sense of the shipped label tables, else the most frequent one in WordNet",
    "context": "another noun of the image is close to this sense",
    "unknown": "no noun of WordNet and no label; similarity 0 to everything",
    "script": "not written in Latin letters; similarity 0 to everything",
    "long": "more than 300 characters, a text and not a phrase; similarity 0 to everything",
    "empty": "no word; similarity 0 to everything",
}
UNKNOWN_RULES = ("unknown", "script", "long", "empty")

MAX_CHARACTERS = 300
MAX_SHOWN = 60
MAX_WORDS = 9  # the longest entries of WordNet have nine words
CLOSE, FAR = 0.55, 0.35
# A sense that texts use less than a tenth as often as the usual one needs more than a neighbour.
RARE = 10
# Fewer phrases than this say nothing about a language.
MIN_PHRASES = 5

ARTICLES = frozenset(
    "a an the this these those some any each every another my your his her its our their several many few both all no"
    .split()
)  # fmt: skip
# Words after which another noun phrase or a verb follows.
BREAKS = ARTICLES | frozenset(
    "of in on at by with without near under over above below beside behind between among from to into onto through "
    "across along around against inside outside atop before after during for as like beneath underneath toward towards "
    "upon off and or but is are was were be being been am has have had while where when who whose "
    "which that because".split()
)  # fmt: skip
# `X of Y` is Y: words for a part or an amount, for a number of things, and for a picture.
PARTITIVES = frozenset(
    "piece slice bit part portion section half side top front back edge end corner pair couple group bunch lot number "
    "set series row line pile stack heap herd flock crowd pack team collection variety array kind type sort assortment "
    "photo photograph picture image view shot closeup close-up painting drawing illustration rendering scene".split()
)  # fmt: skip
# Plurals that WordNet lists as words of their own, for a crowd and not for its members.
PLURALS = {"people": "person", "persons": "person"}
_VERB_ENDINGS = ("ed", "ing", "ly")
_VERBS = frozenset("sits stands lies sat stood lay seen".split())

_CLAUSES = re.compile(r"[,;:.!?()\[\]{}/\"|\n\t]+")
_WORDS = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_CLASS_NAME = re.compile(r"(.*) \((?:([^()\s]+\.n\.\d+)|no sense)(, stuff)?\)")


@dataclass(frozen=True)
class PhraseSense:
    """What a phrase stands for: its noun, the synset, the `rule` of `RULES`, and the data's label where it is one."""

    phrase: str
    noun: str
    synset: str | None
    rule: str
    label: str | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the phrase has no sense and is no label."""
        return self.rule in UNKNOWN_RULES

    @property
    def class_name(self) -> str:
        """The name under which the phrase is scored: a label, or noun and sense, such as `heron (heron.n.02)`."""
        return self.label or make_class_name(self.noun or _shorten(self.phrase), self.synset)


@dataclass(frozen=True)
class ClassName:
    """A class name taken apart: the noun, its synset (None for an unknown phrase), and whether it is stuff."""

    noun: str
    synset: str | None
    is_stuff: bool = False


def make_class_name(noun: str, synset: str | None, *, is_stuff: bool = False) -> str:
    """The name of the class of a noun in one sense; `parse_class_name` takes it apart.

    >>> make_class_name("crane", "crane.n.05"), parse_class_name("sleet (no sense, stuff)")
    ('crane (crane.n.05)', ClassName(noun='sleet', synset=None, is_stuff=True))
    """
    return f"{noun} ({synset or 'no sense'}{', stuff' if is_stuff else ''})"


def parse_class_name(name: str) -> ClassName | None:
    """Noun, synset and kind of a class name; None for another name, such as a label of the data."""
    found = _CLASS_NAME.fullmatch(name)
    return ClassName(found[1], found[2], bool(found[3])) if found else None


def map_phrases(
    phrases: Iterable[str], labels: Collection[str] = (), senses: SenseChoice = "context"
) -> tuple[PhraseSense, ...]:
    """What each phrase of one image stands for; `labels` are the names of the data's labels, which are words too.

    With `senses="first"` the image's other phrases do not count.
    """
    texts = list(phrases)
    names = _index_labels(tuple(labels))
    heads = {text: _find_head(text, names) for text in dict.fromkeys(texts)}
    chosen = {}
    for text, head in heads.items():
        others: set[str] = set()
        if senses == "context":
            nearby = [other.noun for words, other in heads.items() if words != text]
            others = {noun for noun in (*nearby, *head.others) if noun} - {head.noun}
        chosen[text] = _choose(text, head, tuple(sorted(others)))
    return tuple(chosen[text] for text in texts)


@lru_cache(maxsize=16)
def _index_labels(labels: tuple[str, ...]) -> Mapping[str, str]:
    return {normalise_name(label): label for label in labels}


def suggest(phrase: str) -> str:
    """The name in the shipped label tables that is spelled most like a phrase or its last word; empty if none is.

    >>> suggest("a red giraff")
    'giraffe'
    """
    from difflib import get_close_matches

    words, whole = _split(phrase[:MAX_CHARACTERS])
    known = _read_reviewed_names()
    texts = [text for text in (whole, *words[-1:]) if len(text) > 2]
    return next((near[0] for text in texts if (near := get_close_matches(text, known, 1, 0.7))), "")


def check_known(phrases: Sequence[PhraseSense]) -> None:
    """A `DataError` where most of the different phrases are unknown, as phrases in another language are.

    Fewer than five phrases are not judged.
    """
    distinct = {one.phrase: one for one in phrases}
    unknown = sorted(phrase for phrase, one in distinct.items() if one.is_unknown)
    if len(distinct) < MIN_PHRASES or 2 * len(unknown) <= len(distinct):
        return
    scripts = sum(distinct[phrase].rule == "script" for phrase in unknown)
    why = "most are not in Latin letters" if 2 * scripts > len(unknown) else "are they in English?"
    listed = ", ".join(repr(_shorten(phrase)) for phrase in unknown[:5])
    remedy = "free words stand for WordNet's English nouns: translate the phrases; `hardlook labels map --free FILE`"
    raise DataError(
        f"{len(unknown)} of {len(distinct)} phrases have no noun in WordNet, such as {listed}: {why}",
        remedy=f"{remedy} shows what each is taken for",
    )


@dataclass(frozen=True)
class _Head:
    """The noun of a phrase as written in the singular, what it may mean, and the other nouns of the phrase."""

    noun: str
    rule: str = ""
    label: str | None = None
    others: tuple[str, ...] = ()


def _shorten(phrase: str) -> str:
    words = " ".join("".join(c if c.isprintable() else " " for c in phrase).casefold().split())
    return (words if len(words) <= MAX_SHOWN else f"{words[: MAX_SHOWN - 1]}…") or "(nothing)"


def _choose(phrase: str, head: _Head, others: tuple[str, ...]) -> PhraseSense:
    if head.label is not None or head.rule in UNKNOWN_RULES:
        return PhraseSense(phrase, head.noun, None, head.rule, head.label)
    synset, rule = _choose_sense(head.noun, others)
    return PhraseSense(phrase, _name_noun(head.noun, synset), synset, rule)


def _name_noun(noun: str, synset: str) -> str:
    """The noun in the form that the synset lists, such as `glass` for `glasses` in the sense of a container."""
    nouns = load_nouns()
    lemmas = {lemma.lower() for lemma in nouns.lemmas(nouns.index(synset))}
    forms = [form for form in nouns.list_forms(noun) if form in lemmas]
    return (forms[0] if forms else noun).replace("_", " ")


@lru_cache(maxsize=2**16)
def _choose_sense(noun: str, others: tuple[str, ...]) -> tuple[str, str]:
    """The synset of a noun beside other nouns, and the rule that chose it."""
    candidates = list_visible_senses(noun)
    if len(candidates) == 1:
        return candidates[0].name, "only"
    usual = _find_usual(noun)
    rows = [row for other in others if (row := _compare_senses(noun, other)) is not None]
    if rows:
        closest = np.max(rows, axis=0)
        closest[[RARE * one.count < candidates[usual].count for one in candidates]] = 0
        best = int(closest.argmax())
        if closest[best] >= CLOSE and closest[usual] < FAR:
            return candidates[best].name, "context"
    return candidates[usual].name, "usual"


@lru_cache(maxsize=2**16)
def _find_usual(noun: str) -> int:
    """Which of the noun's visible senses is the usual one."""
    candidates, reviewed = list_visible_senses(noun), _read_reviewed_senses()
    for form in load_nouns().list_forms(noun):
        uses = reviewed.get(normalise_name(form), {})
        counts = [uses.get(one.name, NO_USES) for one in candidates]
        if max(counts) > NO_USES:
            return counts.index(max(counts))
    return 0


@lru_cache(maxsize=2**16)
def _compare_senses(noun: str, other: str) -> NDArray[np.float64] | None:
    """(n,) Lin similarity of each sense of a noun to the usual sense of another; None where the other has none."""
    theirs = list_visible_senses(other)
    if not theirs:
        return None
    one = theirs[_find_usual(other)].index
    return np.array([compare_by_lin(sense.index, one) for sense in list_visible_senses(noun)])


@lru_cache(maxsize=2**16)
def list_visible_senses(noun: str) -> tuple[Sense, ...]:
    """The senses of a noun that can be seen, in WordNet's order: physical things, no processes, no proper names.

    Where none is left, proper names count, and then all senses. What the shipped label tables call by this name is seen
    in images, be it another sense (`smoke`) or one that WordNet lists under another noun (`motorbike`).

    >>> [sense.name for sense in list_visible_senses("crane")]
    ['crane.n.04', 'crane.n.05']
    """
    reviewed = _list_reviewed_senses(noun)
    senses = load_nouns().senses(noun) or tuple(sense for sense, _ in reviewed)
    named = {sense.index: sense for sense, (names, _) in reviewed if names}
    forms = set(load_nouns().list_forms(noun))
    common = [sense for sense in senses if any(lemma in forms for lemma in sense.lemmas)] or list(senses)
    visible = [sense for sense in common if sense.index in named or _is_visible(sense.index)]
    listed = {sense.index for sense in visible}
    return tuple([*visible, *(sense for index, sense in named.items() if index not in listed)] or common)


def _list_reviewed_senses(noun: str) -> list[tuple[Sense, Uses]]:
    """The senses that shipped label tables give to a name, which WordNet may lack, such as `potted plant`; and uses."""
    nouns, reviewed = load_nouns(), _read_reviewed_senses()
    keys = [key for form in nouns.list_forms(noun) if (key := normalise_name(form)) in reviewed]
    uses = reviewed[keys[0]] if keys else {}
    ranked = sorted(uses.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
    return [(nouns.sense(nouns.index(synset)), count) for synset, count in ranked]


def compare_by_lin(one: int, other: int) -> float:
    """Lin similarity of two synsets, as the measure `lin` has it; from sets of hypernyms, quick for single pairs."""
    content = noun_information_content()
    if one == other:
        return 1.0
    shared = max((content[node] for node in _list_hypernyms(one) & _list_hypernyms(other)), default=0.0)
    both = content[one] + content[other]
    return float(2 * shared / both) if both > 0 else 0.0


@cache
def _is_visible(index: int) -> bool:
    """Whether a synset is a physical entity and not a process."""
    nouns, above = load_nouns(), _list_hypernyms(index)
    return nouns.index("physical_entity.n.01") in above and nouns.index("process.n.06") not in above


@lru_cache(maxsize=2**16)
def _list_hypernyms(index: int) -> frozenset[int]:
    """A synset and all its hypernyms."""
    above, seen = [index], {index}
    while above:
        for parent in load_nouns().graph.hypernyms(above.pop()).tolist():
            if parent not in seen:
                seen.add(parent)
                above.append(parent)
    return frozenset(seen)


@cache
def _read_reviewed_senses() -> Mapping[str, Mapping[str, Uses]]:
    """For each name and alias of the shipped label tables its corrected synsets, and how many labels have them."""
    nouns = load_nouns()
    senses: dict[str, dict[str, Uses]] = {}
    for shipped in list_label_sets():
        for label in load_label_set(shipped.name, "corrected"):
            if label.synset:
                synset, own = nouns.name(nouns.index(label.synset)), normalise_name(label.name)
                for name in {own, *map(normalise_name, label.aliases)}:
                    names, aliases = senses.setdefault(name, {}).get(synset, NO_USES)
                    senses[name][synset] = (names + (name == own), aliases + (name != own))
    return senses


@cache
def _read_reviewed_names() -> tuple[str, ...]:
    """The names and aliases of the shipped label tables as they are spoken, in alphabetical order."""
    tables = [load_label_set(shipped.name, "corrected") for shipped in list_label_sets()]
    names = {word.lower() for labels in tables for label in labels for word in (label.name, *label.aliases)}
    return tuple(sorted(name for name in names if "-merged" not in name and "-other" not in name))


def _split(phrase: str) -> tuple[list[str], str]:
    """The words of the first clause with any, in lower case, and the whole phrase in lower case without an article."""
    plain = unicodedata.normalize("NFKD", phrase).replace("\u2019", "'").casefold().replace("_", " ")
    plain = plain.replace(" & ", " and ")
    text = " ".join("".join(c for c in plain if not unicodedata.combining(c)).split())  # WordNet writes cafe
    clauses = [words for clause in _CLAUSES.split(text) if (words := _WORDS.findall(_turn_possessive(clause)))]
    words = clauses[0] if clauses else []
    first = next((place for place, word in enumerate(words) if word not in BREAKS), len(words))
    whole = text.replace(".", "").strip(" ,;:!?\"'")
    article, _, rest = whole.partition(" ")
    return words[first:], rest if article in ARTICLES and rest else whole


def _turn_possessive(clause: str) -> str:
    """`the cat's tail` as `tail of the cat`."""
    owner, mark, owned = clause.partition("'s ")
    return f"{owned} of {owner}" if mark and owned.strip() else clause.replace("'s", "")


def _find_head(phrase: str, names: Mapping[str, str]) -> _Head:
    if len(phrase) > MAX_CHARACTERS:
        return _Head("", "long")
    words, whole = _split(phrase)
    if not words:
        return _Head("", "empty")
    for text in dict.fromkeys((_shorten(phrase), whole)):
        if (label := _find_label(text, names)) is not None:
            return _Head(_singular(text), "label", label)
    if not all(unicodedata.name(c, "").startswith("LATIN") for word in words for c in word if c.isalpha()):
        return _Head("", "script")
    if _is_noun(whole) and BREAKS.isdisjoint(whole.split(" ")):
        return _Head(_singular(whole))
    return _find_in_words(words, names)


def _find_in_words(words: Sequence[str], names: Mapping[str, str]) -> _Head:
    """The head among the words of a clause that begins with no article."""
    end = next((place for place, word in enumerate(words) if word in BREAKS), len(words))
    end = _cut_at_verb(words[:end], names)
    others = [word for word in words[end:] if word not in BREAKS and _is_noun(word)]
    for start in range(end):  # an entry such as `chest of drawers`
        for stop in range(min(len(words), start + MAX_WORDS), end, -1):
            text = " ".join(words[start:stop])
            if _find_label(text, names) or (_is_noun(text) and _is_visible(list_visible_senses(text)[0].index)):
                return _make_head(text, names, ())
    text = _find_ending(words[:end], names)
    while end > 1 and (text.isdecimal() or (not text and _is_no_head(words[end - 1]))):
        end -= 1
        text = _find_ending(words[:end], names)
    if not text:
        return _Head("", "unknown")
    rest = words[end:]
    if _singular(text) in PARTITIVES and rest[:1] == ["of"]:
        following = next((place for place, word in enumerate(rest) if word not in BREAKS), None)
        if following is not None:
            return _find_in_words(rest[following:], names)
    before = words[: end - len(text.split(" "))]
    return _make_head(text, names, (*(word for word in before if _is_noun(word)), *others))


def _make_head(text: str, names: Mapping[str, str], others: Iterable[str]) -> _Head:
    label = _find_label(text, names)
    return _Head(_singular(text), "label" if label else "", label, tuple(_singular(word) for word in others))


def _cut_at_verb(words: Sequence[str], names: Mapping[str, str]) -> int:
    """How many words come before a participle such as `riding`, which follows a noun and is no thing itself."""
    for place in range(1, len(words)):
        if not words[place].endswith("ing") or _is_thing(words[place]):
            continue
        compound = any(
            _is_entry(" ".join(words[start:stop]), names)
            for start in range(place + 1)
            for stop in range(place + 1, len(words) + 1)
            if stop - start > 1
        )
        if not compound and any(_is_entry(word, names) for word in words[:place]):
            return place
    return len(words)


def _is_no_head(word: str) -> bool:
    """Whether a word that is no noun may follow one: a verb, an adverb or a number (`person 1`)."""
    return word.endswith(_VERB_ENDINGS) or word in _VERBS or word.isdecimal()


def _is_thing(word: str) -> bool:
    senses = load_nouns().senses(word)
    return bool(senses) and _is_visible(senses[0].index)


def _find_ending(words: Sequence[str], names: Mapping[str, str]) -> str:
    """The longest entry that ends at the last word; empty where there is none."""
    for start in range(max(0, len(words) - MAX_WORDS), len(words)):
        if _is_entry(text := " ".join(words[start:]), names):
            return text
    return ""


def _is_entry(text: str, names: Mapping[str, str]) -> bool:
    return _find_label(text, names) is not None or _is_noun(text)


@lru_cache(maxsize=2**16)
def _is_noun(text: str) -> bool:
    return bool(load_nouns().senses(text) or _list_reviewed_senses(text))


def _find_label(text: str, names: Mapping[str, str]) -> str | None:
    """The label of this name, in the singular or the plural."""
    return next((names[key] for key in _list_label_keys(text) if key in names), None) if names else None


@lru_cache(maxsize=2**16)
def _list_label_keys(text: str) -> tuple[str, ...]:
    forms = (text, _singular(text), *load_nouns().list_forms(text))
    return tuple(dict.fromkeys(map(normalise_name, forms)))


@lru_cache(maxsize=2**16)
def _singular(text: str) -> str:
    """The text with its last word in the singular, as far as WordNet knows it."""
    if text in PLURALS:
        return PLURALS[text]
    first, _, last = text.rpartition(" ")
    nouns = load_nouns()
    for whole in (text, last):
        found = [form for form in nouns.list_forms(whole) if form in nouns]
        if found:
            single = found[0].replace("_", " ")
            return single if whole == text else _keep_noun(text, f"{first} {single}".strip())
    return text


def _keep_noun(text: str, singular: str) -> str:
    """The singular, unless only the plural is a name (`air hockey tables`) in the shipped label tables."""
    return text if _is_noun(text) and not _is_noun(singular) else singular
