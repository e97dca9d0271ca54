"""The record of an instance: every click and what it gave, as whole numbers."""

from __future__ import annotations

import json
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.answering import Answer
from hardlook.benchmarks.rclicks.units import InstanceUnit
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.data.rle import encode

SCHEMA = RecordSchema(
    (
        Column("dataset", "text", "the dataset", "slice"),
        Column("size", "text", "share of the frame: small below 1 %, medium below 10 %, else large", "slice"),
        Column("image", "text", "the image: instances of one image share it"),
        Column("width", "int", "pixels"),
        Column("height", "int", "pixels"),
        Column("pixels", "int", "pixels of the object"),
        Column("courses", "text", "who clicked, separated by commas: base, the groups, perhaps the halves"),
        Column("rounds", "int", "clicks of each course"),
        Column("x", "ints", "of each course and round: column of the click, -1 once a perfect mask ended the clicking"),
        Column("y", "ints", "of each course and round: row of the click"),
        Column("positive", "ints", "of each course and round: 1 for a positive click"),
        Column("intersection", "ints", "of each course and round: pixels of mask and object"),
        Column("union", "ints", "of each course and round: pixels of mask or object"),
        Column("fallbacks", "int", "clicks that fell back to the centre, since the click model left nothing"),
        Column("people", "text", "whose first clicks follow: people's, simulated people's, or nobody's"),
        Column("user_x", "floats", "column of each person's first click"),
        Column("user_y", "floats", "row of each person's first click"),
        Column("user_mobile", "ints", "of each of them: 1 on a mobile device"),
        Column("user_intersection", "ints", "of each of them: pixels of mask and object"),
        Column("user_union", "ints", "of each of them: pixels of mask or object"),
        Column("opened", "int", "1 where the image was opened for this instance, 0 where another one had opened it"),
        Column("conduct", "text", "how the model was driven"),
        Column("clicks", "text", "the click model: its name, arguments and what it says of itself"),
        Column("mean_mask", "bytes", "PNG of the mean mask after one click, over people or else groups", "picture"),
        Column("last_masks", "text", "run lengths of the last masks: centre rule, worst group", "picture"),
    )
)  # fmt: skip
LONGEST_KEPT = 320
SIZES = (("small", 0.01), ("medium", 0.1), ("large", 1.01))


def record_of(unit: Unit, answer: Answer, model: Any, who: str) -> Record:
    """The record of one answered instance; `who` is the click model in words."""
    payload: InstanceUnit = unit.payload
    assert payload.instance is not None
    target, clicked = payload.instance.target, answer.trajectories
    height, width = target.shape
    people = answer.people
    points = np.zeros((0, 2)) if people is None or payload.people is None else payload.people
    mobile = np.zeros(len(points), bool) if payload.mobile is None else payload.mobile
    return {
        "unit": unit.id,
        "dataset": payload.dataset,
        "size": size_of(int(target.sum()) / target.size),
        "image": payload.image,
        "width": width,
        "height": height,
        "pixels": int(target.sum()),
        "courses": ",".join(clicked.courses),
        "rounds": clicked.x.shape[1],
        "x": _flat(clicked.x),
        "y": _flat(clicked.y),
        "positive": _flat(clicked.positive),
        "intersection": _flat(clicked.intersection),
        "union": _flat(clicked.union),
        "fallbacks": int(clicked.fallbacks),
        "people": _whose(payload) if len(points) else "",
        "user_x": points[:, 0].tolist(),
        "user_y": points[:, 1].tolist(),
        "user_mobile": _flat(mobile) if len(points) else [],
        "user_intersection": _flat(people.intersection) if people else [],
        "user_union": _flat(people.union) if people else [],
        "opened": answer.opened,
        "conduct": str(getattr(model, "conduct", "")),
        "clicks": who,
        "mean_mask": encode_shares(people.mean_mask if people else clicked.first_mean),
        "last_masks": _last_masks(answer),
    }


def size_of(share: float) -> str:
    """The object's size in a word.

    >>> [size_of(share) for share in (0.005, 0.05, 1.0)]
    ['small', 'medium', 'large']
    """
    return next(name for name, limit in SIZES if share < limit)


def encode_shares(shares: NDArray[np.float32]) -> bytes:
    """Shares (H, W) in [0, 1] as a grey PNG of at most 320 pixels a side."""
    factor = min(1.0, LONGEST_KEPT / max(shares.shape))
    size = (max(1, round(shares.shape[1] * factor)), max(1, round(shares.shape[0] * factor)))
    small = cv2.resize(shares, size, interpolation=cv2.INTER_AREA)
    return bytes(cv2.imencode(".png", np.rint(small * 255).astype(np.uint8))[1])


def decode_shares(png: bytes) -> NDArray[np.float32]:
    """Back from `encode_shares`, at the size that was kept."""
    stored = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    return np.asarray(stored, np.float32) / np.float32(255)


def worst_group(courses: list[str], ious: NDArray[np.float64]) -> int:
    """The place of the group with the smallest mean IoU; `ious` (courses, rounds)."""
    groups = [place for place, name in enumerate(courses) if name.startswith("G")]
    return groups[int(np.argmin(ious[groups].mean(1)))]


def _last_masks(answer: Answer) -> str:
    clicked = answer.trajectories
    worst = worst_group(list(clicked.courses), clicked.intersection / np.maximum(clicked.union, 1))
    return json.dumps([encode(clicked.last[0]), encode(clicked.last[worst])])


def _whose(payload: InstanceUnit) -> str:
    return "simulated people" if payload.simulated_people else "people"


def _flat(numbers: NDArray[Any]) -> list[int]:
    flat: list[int] = np.asarray(numbers).astype(np.int64).ravel().tolist()
    return flat
