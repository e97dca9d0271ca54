"""Masks that a model of the registry proposes, for models that name masks.

An instance segmenter proposes its objects, a panoptic one its segments, a promptable one what it finds at a grid of
clicks.

>>> masks = np.array([[[1, 1, 0]], [[1, 1, 1]], [[0, 0, 1]]], bool)
>>> drop_repeated(masks, 0.6)
[1, 2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.named_model import NamedModel, build_inner
from hardlook.models.registry import find, takes_argument
from hardlook.models.roles import Clicks, Image

INSTANCES, PANOPTIC, PROMPTABLE = "instance-segmenter", "panoptic-segmenter", "promptable-segmenter"
_METHODS = {INSTANCES: "detect", PANOPTIC: "segment_panoptic", PROMPTABLE: "open"}

_REPEATED = 0.8  # masks of neighbouring points that overlap by more are one


@dataclass(frozen=True)
class Proposals:
    """Masks (n, H, W) bool of an image, none of them empty, scores (n,) float32 in [0, 1], and labels (n,) int32.

    Labels are indices into those of the proposing model; -1 where it has none. Segments and answers to clicks have
    the score 1.
    """

    masks: NDArray[np.bool_]
    scores: NDArray[np.float32]
    labels: NDArray[np.int32]

    def select(self, kept: NDArray[np.bool_]) -> Proposals:
        """Those of them that are `kept` (n,)."""
        return Proposals(self.masks[kept], self.scores[kept], self.labels[kept])


def build_proposer(
    name: str, text: str = "", *, roles: Sequence[str] = (PANOPTIC, INSTANCES, PROMPTABLE), device: str = ""
) -> NamedModel:
    """The model `name` with arguments in `text` (key=value,...), on a device, in the first of the roles that it has."""
    entry = find(name)
    # A class of one's own may name no role: then its methods tell.
    own = entry.card.roles or tuple(role for role in roles if hasattr(entry.factory(), _METHODS[role])) or roles[:1]
    role = next((role for role in roles if role in own), "")
    if not role:
        raise ModelError(
            f"{name!r} proposes no masks: it is a {' and '.join(own)}",
            remedy=f"proposals=NAME of a {', '.join(roles)}; `hardlook models --role {roles[0]}` lists some",
        )
    # One that takes no device runs on the CPU, wherever the model that names its masks does.
    return build_inner(name, role, text, device=device if takes_argument(name, role, "device") else "")


def propose(proposer: NamedModel, images: Sequence[Image], points: int = 16) -> list[Proposals]:
    """What the model proposes on each image; a promptable one is clicked at `points` x `points` places."""
    model, role = proposer.model, proposer.identity.role
    if role == PANOPTIC:
        return [_split_segments(one.map, one.labels) for one in model.segment_panoptic(images)]
    if role == INSTANCES:
        return [_drop_empty(one.masks, one.scores, one.labels) for one in model.detect(images)]
    return [_click(model, image, points) for image in images]


def _split_segments(numbers: NDArray[np.int32], labels: Any) -> Proposals:
    known = sorted(number for number in labels if number > 0)
    masks = np.asarray(numbers)[None] == np.array(known, np.int64)[:, None, None]
    return _drop_empty(masks, np.ones(len(known)), [labels[number] for number in known])


def _drop_empty(masks: Any, scores: Any, labels: Any) -> Proposals:
    found = Proposals(np.asarray(masks, bool), np.asarray(scores, np.float32), np.asarray(labels, np.int32))
    return found.select(np.asarray(found.masks.any(axis=(1, 2))))


def _click(model: Any, image: Image, points: int) -> Proposals:
    height, width = image.shape[:2]
    steps = (np.arange(points) + 0.5) / points
    clicks = [
        Clicks(np.array([[x * width - 0.5, y * height - 0.5]], np.float32), np.array([True]))
        for y in steps
        for x in steps
    ]
    answers = [np.asarray(answer.mask, bool) for answer in model.open(image).predict(clicks)]
    masks = np.stack([mask for mask in answers if mask.any()] or [np.zeros((height, width), bool)])
    masks = masks[drop_repeated(masks, _REPEATED)]
    return _drop_empty(masks, np.ones(len(masks)), np.full(len(masks), -1))


def drop_repeated(masks: NDArray[np.bool_], most: float) -> list[int]:
    """Places of the masks that are kept, large ones first: no two of them have an IoU above `most`."""
    areas = masks.sum(axis=(1, 2))
    kept: list[int] = []
    for place in np.argsort(-areas, kind="stable").tolist():
        for other in kept:
            if areas[place] <= most * areas[other]:
                continue
            shared = int(np.count_nonzero(masks[place] & masks[other]))
            if shared > most * (areas[place] + areas[other] - shared):
                break
        else:
            kept.append(place)
    return kept
