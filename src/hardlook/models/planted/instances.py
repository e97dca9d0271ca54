"""An instance segmenter that knows the truth and misnames, roughens or misses objects as its dials say.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((16, 16), 13, np.uint8)
>>> classes[4:12, 2:10] = 1
>>> picture = sign(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> [found] = PlantedInstances().detect([picture])
>>> found.boxes.tolist(), found.labels.tolist(), len(PlantedInstances(missed=1.0).detect([picture])[0].labels)
([[2.0, 4.0, 10.0, 12.0]], [0], 0)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.models.planted.dials import draw, of_array
from hardlook.models.planted.perception import Faults, perceive
from hardlook.models.registry import register
from hardlook.models.roles import Image, Instances, Mask
from hardlook.world.vocabulary import LABELS

NAME = "planted-instances"
SCORE_NOISE = 0.05


@register(NAME, role="instance-segmenter", summary="the true objects, misnamed, roughened or missed", licence="MIT")
class PlantedInstances:
    """Finds the objects of the picture's signature.

    `sibling`, `stranger`: shares of objects called by the name of their sibling or stranger; `ragged`: share with
    borders off by up to three pixels; `missed`: share not found. All from 0 to 1.
    """

    labels: Sequence[str] = tuple(label.name for label in LABELS)

    def __init__(
        self, sibling: float = 0.0, stranger: float = 0.0, ragged: float = 0.0, missed: float = 0.0, seed: int = 0
    ) -> None:
        self.faults = Faults(sibling=sibling, stranger=stranger, ragged=ragged, missed=missed)
        self.seed = seed

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` an image; scores are 1 less a little noise that knows nothing of the faults."""
        return [self._detect(image) for image in images]

    def _detect(self, image: Image) -> Instances:
        perceived = perceive(image, self.faults, NAME, self.seed)
        key = of_array(image)
        rows = []
        for index, thing in enumerate(perceived.things):
            mask = perceived.owner == index + 1
            if thing.seen and mask.any():
                score = 1 - SCORE_NOISE * draw(self.seed, NAME, key, thing.true, thing.instance, "score")
                rows.append((score, thing.called - 1, mask))
        rows.sort(key=lambda row: -row[0])
        height, width = image.shape[:2]
        return Instances(
            masks=np.array([mask for _, _, mask in rows], bool).reshape(-1, height, width),
            boxes=np.array([_box(mask) for _, _, mask in rows], np.float32).reshape(-1, 4),
            scores=np.array([score for score, _, _ in rows], np.float32),
            labels=np.array([label for _, label, _ in rows], np.int32),
        )


def _box(mask: Mask) -> tuple[int, int, int, int]:
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
