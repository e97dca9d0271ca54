"""One spelling for the names of datasets: lower case, with hyphens.

>>> dataset_name("COCO_MVal"), dataset_name("COCO"), dataset_name("Object CutOut")
('coco-mval', 'coco-mval', 'object-cutout')
"""

from __future__ import annotations

# What the published files call COCO-MVal.
_ALIASES = {"coco": "coco-mval", "cocomval": "coco-mval", "coco-mv": "coco-mval"}


def dataset_name(text: str) -> str:
    """The one spelling of a dataset's name, as instances carry it.

    >>> dataset_name("GrabCut")
    'grabcut'
    """
    plain = text.strip().lower().replace("_", "-").replace(" ", "-")
    return _ALIASES.get(plain, plain)
