"""From a noun as people write it to the forms that a dictionary may list: spelling variants and singulars.

>>> spellings("Traffic Light")
('traffic_light', 'traffic-light', 'trafficlight')
>>> singulars("boxes", {})
('boxe', 'box')
>>> singulars("geese", {"geese": ("goose",)})
('goose',)
"""

from __future__ import annotations

from collections.abc import Mapping

# WordNet's own rules for nouns, as its morphy(7) gives them: an ending and what takes its place.
PLURAL_ENDINGS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
    ("ies", "y"),
)  # fmt: skip


def spellings(word: str) -> tuple[str, ...]:
    """A word in lower case with `_`, then with `-`, then joined; the separators as they were written come first.

    >>> spellings(" T-shirt")
    ('t-shirt', 't_shirt', 'tshirt')
    """
    written = "_".join(word.lower().split())
    pieces = written.replace("-", "_").split("_")
    variants = (written, *(separator.join(pieces) for separator in ("_", "-", "")))
    return tuple(dict.fromkeys(variant for variant in variants if variant))


def singulars(word: str, exceptions: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The forms a plural may come from: its exceptions where it has any, else all that the endings allow."""
    if word in exceptions:
        return exceptions[word]
    endings = (word[: -len(old)] + new for old, new in PLURAL_ENDINGS if word.endswith(old))
    return tuple(dict.fromkeys(form for form in endings if form))
