"""The pictures of an instance: the object, the centre rule's clicks, the worst group's, and where masks disagree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
from hardlook.regions.boxes import box_of

CERTAIN = (0, 158, 115)
MARGIN = 0.4  # of the object's longer side
LEAST_SHOWN = 48  # pixels
LARGE_ENOUGH = 240  # pixels: smaller parts are enlarged


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
    height, width = target.shape
    box = box_of(target)
    assert box is not None
    rows, columns = [box.top, box.bottom], [box.left, box.right]
    rows += [round(y) for _, y, _ in picture.points]
    columns += [round(x) for x, _, _ in picture.points]
    margin = round(MARGIN * max(box.height, box.width, LEAST_SHOWN))
    top, bottom = max(0, min(rows) - margin), min(height, max(rows) + margin)
    left, right = max(0, min(columns) - margin), min(width, max(columns) + margin)
    factor = max(1, LARGE_ENOUGH // max(bottom - top, right - left))
    return replace(
        picture,
        image=_enlarged(picture.image[top:bottom, left:right], factor),
        mask=None if picture.mask is None else _enlarged(picture.mask[top:bottom, left:right], factor),
        points=[
            ((x - left + 0.5) * factor - 0.5, (y - top + 0.5) * factor - 0.5, positive)
            for x, y, positive in picture.points
        ],
    )


def _enlarged(pixels: NDArray[Any], factor: int) -> NDArray[Any]:
    """Every pixel as a square of `factor` a side."""
    return np.ascontiguousarray(pixels.repeat(factor, 0).repeat(factor, 1))


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
