"""How a label is read aloud, for measures that work on words and not on senses.

>>> from hardlook.labels.label_set import Label
>>> [wording(Label(0, *names)) for names in [("tvmonitor", ("tv", "tv monitor")), ("wall-brick", ("brick wall",))]]
['tv monitor', 'brick wall']
>>> wording(Label(0, "aerosol_can", ("spray can",))), wording(Label(0, "hot-air balloon"))
('aerosol can', 'hot-air balloon')
"""

from __future__ import annotations

import re

from hardlook.labels.label_set import Label

WITHOUT_MEANING = frozenset({"background", "void", "unlabeled", "unlabelled", "ignore"})
"""Names that stand for what has no label: similarity 0 to every other label under every measure."""


def wording(label: Label) -> str:
    """The words of a label: its name, with two exceptions, and spaces for underscores.

    An alias that is the name with its words apart (`diningtable`, `dining table`) is read in its place. So is the
    first alias of a name with a hyphen and no space, which is how COCO writes stuff (`sky-other-merged`, `sky`).
    """
    apart = [alias for alias in label.aliases if " " in alias and _letters(alias) == _letters(label.name)]
    if apart and not re.search(r"[\s_]", label.name):
        return apart[0]
    if "-" in label.name and " " not in label.name and label.aliases:
        return label.aliases[0]
    return label.name.replace("_", " ").strip()


def has_no_meaning(label: Label) -> bool:
    """Whether the label stands for what has no label: so named, and nobody gave it a sense."""
    return label.synset is None and label.hypernym is None and label.name.casefold() in WITHOUT_MEANING


def _letters(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
