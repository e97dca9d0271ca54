"""The pictures of an instance: the object, the centre rule's clicks, the worst group's, and where masks disagree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.records import decode_shares, worst_group
from hardlook.benchmarks.rclicks.units import read_instance
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture
from hardlook.data.rle import decode
from hardlook.models.roles import Mask
from hardlook.regions.close_ups import close_up

CERTAIN = (0, 158, 115)


def pictures_of(unit: Unit, record: Record) -> Sequence[Picture]:
    """What is to be segmented, what two courses came to, and the mean mask after one click."""
    instance = read_instance(unit.payload)
    courses, rounds = record["courses"].split(","), record["rounds"]
    shape = (len(courses), rounds)
    ious = np.reshape(record["intersection"], shape) / np.maximum(np.reshape(record["union"], shape), 1)
    worst = worst_group(courses, ious)
    base_mask, worst_mask = (decode(mask) for mask in json.loads(record["last_masks"]))
    pictures = [Picture("the object", instance.image, mask=instance.target)]
    for place, name, mask in ((0, "centre clicks", base_mask), (worst, courses[worst], worst_mask)):
        clicks = _clicks(record, place, rounds)
        label = f"{name}: IoU {ious[place, -1]:.2f} after {len(clicks)}"
        pictures.append(Picture(label, instance.image, mask=mask, points=clicks))
    shown = [*pictures, _disagreement(record, instance.image)]
    return [_close_up(picture, instance.target) for picture in shown]


def _close_up(picture: Picture, target: Mask) -> Picture:
    """The part of a picture around the object, wide enough for all clicks on it."""
    places = [(x, y) for x, y, _ in picture.points]
    close = close_up(target, points=places)
    signs = [positive for _, _, positive in picture.points]
    return replace(
        picture,
        image=close.cut(picture.image),
        mask=None if picture.mask is None else close.cut(picture.mask),
        points=[(x, y, positive) for (x, y), positive in zip(close.moved(places), signs, strict=True)],
    )


def _clicks(record: Record, course: int, rounds: int) -> list[tuple[float, float, bool]]:
    at = slice(course * rounds, (course + 1) * rounds)
    rows = zip(record["x"][at], record["y"][at], record["positive"][at], strict=True)
    return [(float(x), float(y), bool(positive)) for x, y, positive in rows if x >= 0]


def _disagreement(record: Record, image: NDArray[np.uint8]) -> Picture:
    """The mean mask over the picture in grey: green where all masks agree on the object, paler where few do."""
    shares = cv2.resize(decode_shares(record["mean_mask"]), image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)[..., None] * 0.55 + 60
    share = shares[..., None] * 0.8
    drawn = grey * (1 - share) + np.asarray(CERTAIN, np.float32) * share
    people = list(zip(record["user_x"], record["user_y"], strict=True))
    if people:
        points = [(float(x), float(y), True) for x, y in people]
        label = f"mean mask over clicks of {len(people)} {record['people']}"
        return Picture(label, _pixels(drawn), points=points, ordered=False)
    firsts = range(1, record["courses"].count(",G") + 1)
    rounds = record["rounds"]
    points = [(float(record["x"][c * rounds]), float(record["y"][c * rounds]), True) for c in firsts]
    return Picture("mean mask over the groups' first clicks", _pixels(drawn), points=points, ordered=False)


def _pixels(drawn: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.asarray(np.rint(drawn.clip(0, 255)), np.uint8)
