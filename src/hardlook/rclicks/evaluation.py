"""Evaluate a model on instances by simulated clicks; an instance's record has every click and its pixel counts.

Each image is opened once for all of its instances, and all courses of an instance make their n-th click together.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import decode_picture
from hardlook.data.rle import encode
from hardlook.errors import DataError, ModelError
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.models.answer_checks import CheckedSession
from hardlook.models.roles import Session, fit_to_dataset
from hardlook.rclicks.click_models import build_click_model, describe_click_model
from hardlook.rclicks.clicks.courses import BASE, HALVES, Rules, find_groups, make_clicking_groups, repeat_courses
from hardlook.rclicks.clicks.simulation import (
    FirstClicks,
    Trajectories,
    join_draws,
    simulate_clicks,
    simulate_first_clicks,
)
from hardlook.rclicks.clicks.simulation_runner import iterate_simulations
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
        Column("courses", "text", "who clicked, by commas: base, the groups, perhaps the halves; G1#2: second draw"),
        Column("rounds", "int", "clicks of each course"),
        Column("x", "ints", "of each course and round: column of the click; -1 for a box and after a perfect mask"),
        Column("y", "ints", "of each course and round: row of the click"),
        Column("positive", "ints", "of each course and round: 1 for a positive click"),
        Column("intersection", "ints", "of each course and round: pixels of mask and object"),
        Column("union", "ints", "of each course and round: pixels of mask or object"),
        Column("boundary", "ints", "with --boundary, of each course and round: pixels of both bands, of either, of the "
               "mask's contour, of it matched, of the object's contour, of it matched", default=[]),
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
MAX_MEAN_MASK_SIDE = 320  # pixels
SIZES = (("small", 0.01), ("medium", 0.1), ("large", 1.01))


def evaluate_units(units: Sequence[Unit], model: Any) -> list[Record]:
    """One record per prepared unit."""
    return list(evaluate_each(units, model))


def check_first_prompt(units: Sequence[Unit], model: Any, show_progress: object = None) -> None:
    """A `ModelError` for a box as first prompt where the model takes none; as the benchmark's `setup` too."""
    if units and units[0].payload.options.first_prompt == "box" and not getattr(model, "takes_boxes", False):
        remedy = "--first-prompt click, or a model with `takes_boxes = True`, such as mobile-sam, sam or grabcut"
        raise ModelError(f"--first-prompt box: {type(model).__name__} does not take boxes", remedy=remedy)


def evaluate_each(units: Sequence[Unit], model: Any) -> Iterator[Record]:
    """Yield the record of each prepared unit, in their order, as soon as its clicks are done."""
    if model is None:
        remedy = "`hardlook models --role promptable-segmenter` lists some"
        raise ModelError("RClicks needs a model that answers clicks", remedy=remedy)
    options: RClicksOptions = units[0].payload.options
    click_model = build_click_model(options.clicks, options.clicks_args).model
    courses = (BASE, *make_clicking_groups(options.groups), *(HALVES if options.halves else ()))
    rules = Rules(
        options.rounds, options.group_rule, options.perfect, options.seed, options.boundary, options.first_prompt
    )
    check_first_prompt(units, model)
    opened: Counter[str] = Counter()

    def open_image(unit: Unit) -> Session:
        opened[unit.group] += 1
        return CheckedSession(fit_to_dataset(model, unit.payload.dataset), unit.payload.instance.image)

    # `run_simulations` calls a function once: simulations with the same one share its session.
    sources: dict[str, Callable[[], Session]] = {}
    simulations: list[tuple[Callable[[], Session], Any]] = []
    # A draw is a simulation of its own: its prompts share no forward pass with another draw's, whose size could change
    # the last bits of a mask.
    draws = [courses, *(repeat_courses(courses, draw) for draw in range(2, options.draws + 1))]
    for unit in units:
        instance, people = unit.payload.instance, unit.payload.people
        source = sources.setdefault(unit.group, partial(open_image, unit))
        simulations += [(source, simulate_clicks(instance, draw, click_model, rules)) for draw in draws]
        if people is not None and len(people):
            simulations.append((source, simulate_first_clicks(instance, people)))
    results = iterate_simulations(simulations, prompts_per_call=options.prompts_a_call)
    clicks = describe_click_model(options.clicks, options.clicks_args)
    for unit in units:
        clicked, people = join_draws([next(results) for _ in draws]), unit.payload.people
        first_clicks = next(results) if people is not None and len(people) else None
        # An image counts as opened for the first of its units, also where that was evaluated before a run was resumed.
        times = opened.pop(unit.group, 0) if unit.payload.first_of_image else 0
        yield make_record(unit, clicked, first_clicks, times, fit_to_dataset(model, unit.payload.dataset), clicks)


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
    who_clicked = "simulated people" if payload.simulated_people else "people"
    worst = find_worst_group(clicked.courses, clicked.intersection / np.maximum(clicked.union, 1))
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
        "x": _to_int_list(clicked.x),
        "y": _to_int_list(clicked.y),
        "positive": _to_int_list(clicked.positive),
        "intersection": _to_int_list(clicked.intersection),
        "union": _to_int_list(clicked.union),
        "boundary": [] if clicked.boundary is None else _to_int_list(clicked.boundary),
        "fallbacks": int(clicked.fallbacks),
        "people": who_clicked if len(points) else "",
        "user_x": points[:, 0].tolist(),
        "user_y": points[:, 1].tolist(),
        "user_mobile": _to_int_list(mobile) if len(points) else [],
        "user_intersection": _to_int_list(people.intersection) if people else [],
        "user_union": _to_int_list(people.union) if people else [],
        "opened": opened,
        "conduct": str(getattr(model, "conduct", "")),
        "clicks": clicks,
        "mean_mask": encode_shares(people.mean_mask if people else clicked.first_mean),
        "last_masks": json.dumps([encode(clicked.last[0]), encode(clicked.last[worst])]),
    }


def classify_size(share: float) -> str:
    """The size class (small, medium, large) of an object that covers `share` of the frame.

    >>> [classify_size(share) for share in (0.005, 0.05, 1.0)]
    ['small', 'medium', 'large']
    """
    return next(name for name, limit in SIZES if share < limit)


def encode_shares(shares: NDArray[np.float32]) -> bytes:
    """Shares (H, W) in [0, 1] as a grey PNG of at most 320 pixels per side."""
    factor = min(1.0, MAX_MEAN_MASK_SIDE / max(shares.shape))
    size = (max(1, round(shares.shape[1] * factor)), max(1, round(shares.shape[0] * factor)))
    small = cv2.resize(shares, size, interpolation=cv2.INTER_AREA)
    return bytes(cv2.imencode(".png", np.rint(small * 255).astype(np.uint8))[1])


def decode_shares(png: bytes) -> NDArray[np.float32]:
    """Shares from the PNG of `encode_shares`, at the size that was stored."""
    stored = decode_picture(png, cv2.IMREAD_UNCHANGED)
    if stored is None:
        raise DataError("a picture in the records is damaged", remedy="run again")
    return np.asarray(stored, np.float32) / np.float32(255)


def find_worst_group(courses: Sequence[str], ious: NDArray[np.float64]) -> int:
    """The index of the group with the smallest mean IoU; `ious` (courses, rounds)."""
    groups = find_groups(courses)
    return groups[int(np.argmin(ious[groups].mean(1)))]


def _to_int_list(numbers: NDArray[Any]) -> list[int]:
    integers: list[int] = np.asarray(numbers).astype(np.int64).ravel().tolist()
    return integers
