"""LVIS's labels from its own json, which carries a synset for each category.

>>> import json, tempfile, pathlib
>>> file = pathlib.Path(tempfile.mkdtemp()) / "lvis.json"
>>> dog = {"id": 3, "name": "dog", "synset": "dog.n.01", "synonyms": ["dog", "hound"]}
>>> _ = file.write_text(json.dumps({"categories": [dog]}))
>>> read_lvis_labels(file).labels
(Label(id=0, name='dog', aliases=('hound',), synset='dog.n.01', hypernym=None, isthing=True, category_id=3, ...),)
"""

from __future__ import annotations

import json
from pathlib import Path

from hardlook.errors import DataError, OptionError
from hardlook.labels.label_set import Label, LabelSet
from hardlook.wordnet.nouns import Nouns, load_nouns


def read_lvis_labels(path: Path | str, nouns: Nouns | None = None) -> LabelSet:
    """The labels of an LVIS annotation file, by category id; all are things.

    `id` counts from 0, `category_id` is LVIS's own. A synset that WordNet 3.0 does not have is left empty and kept in
    `stated`, so that `place` treats and counts it like any other label without a sense.
    """
    path = Path(path)
    nouns = nouns or load_nouns()
    try:
        categories = json.loads(path.read_text(encoding="utf-8"))["categories"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise DataError("this is no LVIS json", file=path, remedy="give a file with a list `categories`") from error
    labels = []
    for row, category in enumerate(sorted(categories, key=lambda category: int(category["id"]))):
        for field in ("name", "synset"):
            if field not in category:
                remedy = "read a file without synsets with load_label_set"
                raise DataError(f"a category has no {field!r}", file=path, unit=f"id {category['id']}", remedy=remedy)
        labels.append(_label(row, category, nouns))
    return LabelSet(path.stem, "file", tuple(labels))


def _label(row: int, category: dict[str, object], nouns: Nouns) -> Label:
    name, stated = str(category["name"]), str(category["synset"])
    synonyms = category.get("synonyms")
    aliases = [str(word) for word in synonyms] if isinstance(synonyms, list) else []
    try:
        synset = nouns.name(nouns.index(stated))
    except OptionError:
        synset = None
    return Label(
        id=row,
        name=name,
        aliases=tuple(alias for alias in aliases if alias != name),
        synset=synset,
        isthing=True,
        category_id=int(str(category["id"])),
        stated=None if synset else stated,
    )
