"""Sets of classes to score on their own: COCO's base and novel ones by name, others from a file.

>>> from hardlook.data.coco_base_novel import BASE, NOVEL
>>> masks = chosen_sets(Path("coco-48-17"), [*BASE, *NOVEL, "fire hydrant"])
>>> {name: int(mask.sum()) for name, mask in masks.items()}
{'base': 48, 'novel': 17}
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_labels.matrix import read_class_sets
from hardlook.data.coco_base_novel import CLASS_SETS
from hardlook.errors import OptionError
from hardlook.labels.label_set import plain_name

SHIPPED = {"coco-48-17": CLASS_SETS}


def chosen_sets(asked: Path | None, names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Each set as a mask (K,) over `names`; none when none were asked for."""
    if asked is None:
        return {}
    shipped = SHIPPED.get(str(asked))
    if shipped is None:
        return read_class_sets(asked, names)
    places = {plain_name(name) for name in names}
    missing = [member for members in shipped.values() for member in members if plain_name(member) not in places]
    if missing:
        raise OptionError(
            f"--class-sets {asked}: {len(missing)} of its classes are no labels of the run: {', '.join(missing[:5])}",
            remedy='write sets of your own: {"base": ["cat", "dog"], "novel": ["owl"]}, and give --class-sets FILE',
        )
    return {
        name: np.isin([plain_name(one) for one in names], [plain_name(member) for member in members])
        for name, members in shipped.items()
    }
