"""A label set by its name or from a file.

>>> len(load_label_set("ade150")), load_label_set("ade150").find("palm tree").synset
(150, 'palm.n.03')
"""

from __future__ import annotations

from pathlib import Path

from hardlook.errors import OptionError
from hardlook.labels.label_files import read_label_file
from hardlook.labels.label_set import LabelSet
from hardlook.labels.shipped import list_label_sets, read_shipped
from hardlook.wordnet.nouns import Nouns

_OWN_FILE = {
    "ade847": "give ADE20K's own class list as a file (names, or `id: name` lines), its senses chosen with "
    "`hardlook labels map LIST --out TABLE.csv`",
    "lvis": "give LVIS's annotation json: its categories carry their synsets",
}


def load_label_set(name_or_path: str | Path, variant: str = "corrected", *, nouns: Nouns | None = None) -> LabelSet:
    """A shipped label set (`hardlook labels list`) or a user's file: CSV, TSV, JSON (LVIS's too) or plain text.

    `variant` chooses the senses of a shipped set; a file has its own. An unknown name is an `OptionError`.
    """
    asked = str(name_or_path)
    shipped = [known.name for known in list_label_sets()]
    if asked in shipped:
        return read_shipped(asked, variant)
    if Path(asked).is_file():
        return read_label_file(Path(asked), nouns=nouns)
    if asked.lower() in _OWN_FILE:
        raise OptionError(f"the labels {asked!r} do not ship", remedy=_OWN_FILE[asked.lower()])
    from difflib import get_close_matches

    near = get_close_matches(asked.lower(), shipped, n=3) or shipped
    raise OptionError(f"no label set and no file {asked!r}", remedy=f"a file, or one of {', '.join(near)}")
