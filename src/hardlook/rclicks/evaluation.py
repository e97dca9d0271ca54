"""Clicking on instances with a model, and the record of each: every click and its counts, as whole numbers.

Each image is opened once for all of its instances, and the courses of an instance click in step.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.rle import encode
from hardlook.errors import ModelError
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.models.roles import Session
from hardlook.rclicks.click_models import build_click_model, describe_click_model
from hardlook.rclicks.clicks.courses import BASE, HALVES, Rules, clicking_groups, find_groups
from hardlook.rclicks.clicks.simulation import FirstClicks, Trajectories, simulate_clicks, simulate_first_clicks
from hardlook.rclicks.clicks.simulation_runner import run_simulations
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.units import InstanceUnit

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
        Column("people", "text", "whose first clicks follow: people, simulated people, or empty without any"),
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
LONGEST_KEPT = 320  # side in pixels of a stored mean mask
SIZES = (("small", 0.01), ("medium", 0.1), ("large", 1.01))


def evaluate_units(units: Sequence[Unit], model: Any) -> list[Record]:
    """One record per prepared unit."""
    if model is None:
        remedy = "`hardlook models --role promptable-segmenter` lists some"
        raise ModelError("RClicks needs a model that answers clicks", remedy=remedy)
    options: RClicksOptions = units[0].payload.options
    click_model = build_click_model(options.clicks, options.clicks_args).model
    courses = (BASE, *clicking_groups(options.groups), *(HALVES if options.halves else ()))
    rules = Rules(options.rounds, options.group_rule, options.perfect, options.seed)
    opened: Counter[str] = Counter()

    def open_image(unit: Unit) -> Session:
        opened[unit.group] += 1
        session: Session = model.open(unit.payload.instance.image)
        return session

    # Simulations with the same function share its session.
    sources: dict[str, Callable[[], Session]] = {}
    simulations: list[tuple[Callable[[], Session], Any]] = []
    for unit in units:
        instance, people = unit.payload.instance, unit.payload.people
        source = sources.setdefault(unit.group, partial(open_image, unit))
        simulations.append((source, simulate_clicks(instance, courses, click_model, rules)))
        if people is not None and len(people):
            simulations.append((source, simulate_first_clicks(instance, people)))
    results = iter(run_simulations(simulations, prompts_per_call=options.prompts_a_call))
    clicks = describe_click_model(options.clicks, options.clicks_args)
    records = []
    for unit in units:
        clicked, people = next(results), unit.payload.people
        first_clicks = next(results) if people is not None and len(people) else None
        # An image counts as opened for the first of its units.
        records.append(make_record(unit, clicked, first_clicks, opened.pop(unit.group, 0), model, clicks))
    return records


def make_record(
    unit: Unit, clicked: Trajectories, people: FirstClicks | None, opened: int, model: Any, clicks: str
) -> Record:
    """The record of one instance; `opened` is how often its image was opened, `clicks` describes the click model."""
    payload: InstanceUnit = unit.payload
    assert payload.instance is not None
    target = payload.instance.target
    height, width = target.shape
    points = np.zeros((0, 2)) if people is None or payload.people is None else payload.people
    mobile = np.zeros(len(points), bool) if payload.mobile is None else payload.mobile
    whose = "simulated people" if payload.simulated_people else "people"
    worst = worst_group(clicked.courses, clicked.intersection / np.maximum(clicked.union, 1))
    return {
        "unit": unit.id,
        "dataset": payload.dataset,
        "size": classify_size(int(target.sum()) / target.size),
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
        "people": whose if len(points) else "",
        "user_x": points[:, 0].tolist(),
        "user_y": points[:, 1].tolist(),
        "user_mobile": _flat(mobile) if len(points) else [],
        "user_intersection": _flat(people.intersection) if people else [],
        "user_union": _flat(people.union) if people else [],
        "opened": opened,
        "conduct": str(getattr(model, "conduct", "")),
        "clicks": clicks,
        "mean_mask": encode_shares(people.mean_mask if people else clicked.first_mean),
        "last_masks": json.dumps([encode(clicked.last[0]), encode(clicked.last[worst])]),
    }


def classify_size(share: float) -> str:
    """The object's size by its share of the frame.

    >>> [classify_size(share) for share in (0.005, 0.05, 1.0)]
    ['small', 'medium', 'large']
    """
    return next(name for name, limit in SIZES if share < limit)


def encode_shares(shares: NDArray[np.float32]) -> bytes:
    """Shares (H, W) in [0, 1] as a grey PNG of at most 320 pixels per side."""
    factor = min(1.0, LONGEST_KEPT / max(shares.shape))
    size = (max(1, round(shares.shape[1] * factor)), max(1, round(shares.shape[0] * factor)))
    small = cv2.resize(shares, size, interpolation=cv2.INTER_AREA)
    return bytes(cv2.imencode(".png", np.rint(small * 255).astype(np.uint8))[1])


def decode_shares(png: bytes) -> NDArray[np.float32]:
    """Shares from the PNG of `encode_shares`, at the size that was stored."""
    return np.asarray(cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED), np.float32) / np.float32(255)


def worst_group(courses: Sequence[str], ious: NDArray[np.float64]) -> int:
    """The index of the group with the smallest mean IoU; `ious` (courses, rounds)."""
    groups = find_groups(courses)
    return groups[int(np.argmin(ious[groups].mean(1)))]


def _flat(numbers: NDArray[Any]) -> list[int]:
    flat: list[int] = np.asarray(numbers).astype(np.int64).ravel().tolist()
    return flat
