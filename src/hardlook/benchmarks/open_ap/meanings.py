"""Every score of open AP in words.

>>> [meaning.name for meaning in MEANINGS if meaning.headline]
['ap', 'dagger-ap', 'open-ap', 'open-gain']
"""

from __future__ import annotations

from hardlook.contract.benchmark import ScoreMeaning

_KINDS = {
    "": ("vanilla", "COCO's own: matched within classes"),
    "dagger-": ("dagger", "classes pooled in matching, only the right label counts"),
    "open-": ("open", "classes pooled in matching, similar labels count in part"),
}
_QUANTITIES = {
    "ap": ("AP", "mean precision over IoU .5 to .95"),
    "ap50": ("AP50", "mean precision at IoU .5"),
    "ap75": ("AP75", "mean precision at IoU .75"),
    "aps": ("APs", "AP of objects below 32 x 32 pixels"),
    "apm": ("APm", "AP of objects between 32 x 32 and 96 x 96 pixels"),
    "apl": ("APl", "AP of objects above 96 x 96 pixels"),
    "ar": ("AR", "mean share of objects found over IoU .5 to .95"),
}
_COSTS = (
    ScoreMeaning(
        "confused-objects", "confused objects", "objects of one label found under another", higher_is_better=False
    ),
    ScoreMeaning(
        "unforgiven-objects",
        "unforgiven objects",
        "the part that similarity does not forgive",
        higher_is_better=False,
    ),
)

MEANINGS = (
    *(
        ScoreMeaning(prefix + name, f"{kind} {title}", f"{meaning}; {how}", headline=name == "ap")
        for prefix, (kind, how) in _KINDS.items()
        for name, (title, meaning) in _QUANTITIES.items()
    ),
    ScoreMeaning(
        "open-gain", "given back", "open AP minus dagger AP, on the same images", headline=True, directed=False
    ),
    *_COSTS,
)
