r"""Files of phrases in free words: reading them, and rows that say what each phrase is taken for.

>>> import pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "phrases.txt"
>>> _ = file.write_text("a crane\nheron\n\na crane\ntrucks\n")
>>> read_phrases(file)
{'1': ('a crane', 'heron'), '2': ('a crane', 'trucks')}
>>> [(row["image"], row["phrase"], row["synset"]) for row in describe_phrases(read_phrases(file))[:3]]
[('1', 'a crane', 'crane.n.05'), ('1', 'heron', 'heron.n.02'), ('2', 'a crane', 'crane.n.04')]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast, get_args

from hardlook.errors import DataError, OptionError
from hardlook.reading import read_json, reading
from hardlook.similarity.free_words.phrases import SenseChoice, map_phrases, suggest
from hardlook.similarity.wordnet.nouns import load_nouns

_REMEDY = (
    "write one phrase per line and an empty line between images, or JSON as "
    '{"image": ["a red car", "sky"]} or {"image": {"3": "a red car"}}'
)


def read_phrases(path: Path) -> dict[str, tuple[str, ...]]:
    """The phrases of each image: of a text file numbered from 1, of JSON by their names."""
    if not path.is_file():
        raise DataError("there is no such file of phrases", file=path, remedy=_REMEDY)
    if path.suffix.lower() == ".json":
        images = {name: tuple(phrases.values()) for name, phrases in read_numbered_phrases(path).items()}
    else:
        with reading(path, "not a file of phrases", remedy=_REMEDY):
            lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
        blocks = [block.strip("\n").split("\n") for block in "\n".join(lines).split("\n\n") if block.strip("\n")]
        images = {str(number): tuple(block) for number, block in enumerate(blocks, 1)}
    if not any(images.values()):
        raise DataError("there are no phrases", file=path, remedy=_REMEDY)
    return images


def read_numbered_phrases(path: Path, first: int = 0) -> dict[str, dict[int, str]]:
    """The phrases of each image by their numbers in its map: a list counts from `first`, an object states them."""
    content = read_json(path, remedy=_REMEDY)
    with reading(path, "not a table of phrases", remedy=_REMEDY):
        return {str(image): _number_phrases(phrases, first, path, str(image)) for image, phrases in content.items()}


def _number_phrases(phrases: Any, first: int, path: Path, image: str) -> dict[int, str]:
    pairs = phrases.items() if isinstance(phrases, dict) else enumerate(phrases, first)
    numbered = {int(number): phrase for number, phrase in pairs}
    if len(numbered) < len(phrases):
        raise DataError("two phrases have one number", file=path, unit=image, remedy=_REMEDY)
    if isinstance(phrases, str) or not all(isinstance(phrase, str) for phrase in numbered.values()):
        raise DataError("the phrases of an image are not a list of texts", file=path, unit=image, remedy=_REMEDY)
    return numbered


def describe_phrases(
    images: Mapping[str, Collection[str]], labels: Collection[str] = (), senses: str = "context"
) -> list[dict[str, Any]]:
    """A row per different phrase of each image: image, phrase, noun, synset, label, rule and gloss.

    In place of the gloss, a phrase without a sense has the name that is spelled most like it.
    """
    if senses not in get_args(SenseChoice):
        raise OptionError(f"--senses {senses}: no such choice", remedy=f"one of {', '.join(get_args(SenseChoice))}")
    nouns, rows = load_nouns(), []
    for image, phrases in images.items():
        for one in dict.fromkeys(map_phrases(phrases, labels, cast("SenseChoice", senses))):
            gloss = nouns.gloss(nouns.index(one.synset)) if one.synset else ""
            near = suggest(one.phrase) if one.is_unknown else ""
            row = {"image": image, "phrase": one.phrase, "noun": one.noun, "synset": one.synset, "label": one.label}
            rows.append({**row, "rule": one.rule, "gloss": f"did you mean {near!r}?" if near else gloss})
    return rows
