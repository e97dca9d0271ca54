"""Checkpoints beside each other by what they cost: robustness and clicks against latency, with the Pareto front.

Latency is opening an image and answering its first click, as in the paper's Table 5. It is measured apart from the run,
one prompt at a time, since a run answers many courses together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hardlook.harness.costs import CostMeasure, MeasuredRun
from hardlook.harness.sections import Block, ScatterChart, Section, Spot, Table
from hardlook.harness.stats.pareto import find_front
from hardlook.rclicks.leaderboard import find_shared_datasets, get_shared_values
from hardlook.rclicks.published import (
    CLICK_TIME,
    COST_COLUMNS,
    DATASETS,
    LATENCY,
    OPENING_TIME,
    TITLES,
    list_checkpoints,
)
from hardlook.rclicks.time_to_mask import COST_SCHEMA
from hardlook.report.formatting import format_count

if TYPE_CHECKING:
    from hardlook.models.named_model import NamedModel

IMAGES, CLICKS = 3, 5
"""How many images are opened for the cost of a checkpoint, and clicks on each, after one image that warms up."""

COLUMNS = (LATENCY, CLICK_TIME, OPENING_TIME, *(name for name in COST_COLUMNS if name != LATENCY))
SHOWN = {"noc90": "NoC@90", "dgr": "dGR, %", "nsr": "NSR@20, %"}
TITLES_AND_CAPTIONS = {
    "dgr": (
        "Robustness against latency",
        "How much it matters who clicks: dGR is how many more clicks the least probable group needs than the most "
        "probable one. Where no group reaches 90 % IoU there is no difference, so a network that rarely gets there has "
        "a low dGR as well: the next chart tells.",
    ),
    "nsr": (
        "Robustness against latency",
        "How much it matters who clicks: NSR is the spread of IoU-AuC between the clicking groups over its mean. dGR "
        "is undefined here, since no course reaches 90 % IoU.",
    ),
    "noc90": ("Clicks needed against latency", "Clicks to 90 % IoU, mean over the clicking groups."),
}
PUBLISHED = "published, Table 5 (the authors' GPU)"


def measure_checkpoint(named: NamedModel, threads: int) -> dict[str, Any]:
    """The content of `cost.json` for a model: as `hardlook clicks cost`, with few images and clicks."""
    from hardlook.rclicks.cost import make_document, measure_cost

    role = "promptable-segmenter"
    return make_document(named, measure_cost(named.model, role, images=IMAGES, clicks=CLICKS, threads=threads))


def read_costs(content: Mapping[str, Any]) -> dict[str, float]:
    """The content of a `cost.json` by columns, in milliseconds, gigabytes, millions and billions.

    What is not known of a model that is no network in torch is left out.
    """
    if content["schema"] != COST_SCHEMA or not isinstance(content["model"], Mapping):
        raise ValueError(f"expected {COST_SCHEMA}")
    cost = content["cost"]
    found = {
        LATENCY: float(cost["first_mask"]["mean"]),
        CLICK_TIME: float(cost["click"]["mean"]),
        OPENING_TIME: float(cost["opening"]["mean"]),
        "GB": cost["peak_memory"] / 1e9,
    }
    if cost["parameters"] is not None:
        found["M parameters"] = cost["parameters"] / 1e6
    if cost["click_flops"] is not None:
        found["GFLOPs"] = ((cost["opening_flops"] or 0) + cost["click_flops"]) / 1e9
    if not all(0 <= value < math.inf for value in (*found.values(), cost["images"], cost["clicks"])):
        raise ValueError("its numbers are not all at least 0")
    _describe_place(content)
    return found


def build_cost_section(runs: Sequence[MeasuredRun]) -> Section | None:
    """Robustness and clicks against latency, and all costs as a table; None where no run has a cost."""
    measured = [one for one in runs if one.cost is not None]
    if not measured:
        return None
    shared = find_shared_datasets(measured[0].scorecard)
    rows = [_Row(one, shared) for one in measured]
    # Only times of one machine can be compared; where there are several, those of most checkpoints.
    (place, _), *_ = Counter(row.place for row in rows).most_common()
    robustness = "dgr" if any("dgr" in row.scores for row in rows) else "nsr"
    drawn = [name for name in (robustness, "noc90") if any(name in row.scores for row in rows)]
    fronts = {name: _find_front(rows, name, place) for name in drawn}
    blocks: list[Block] = [_draw(rows, name, fronts[name], place, shared) for name in drawn]
    blocks.append(_tabulate(rows, fronts, shared))
    return Section("What each checkpoint costs", " ".join(_describe(runs, rows, place)), tuple(blocks))


class _Row:
    """A run with its scores, its costs and where they were measured."""

    def __init__(self, run: MeasuredRun, shared: Sequence[str]) -> None:
        assert run.cost is not None
        self.name, self.scores = run.name, get_shared_values(run.scorecard, shared)
        self.costs, self.place, self.content = read_costs(run.cost), _describe_place(run.cost), run.cost["cost"]


def _describe_place(content: Mapping[str, Any]) -> str:
    """Device, machine and threads, and the pictures' size where it is not the usual one."""
    cost = content["cost"]
    threads = f", {format_count(cost['threads'], 'thread')}" if cost["threads"] else ""
    size = "" if (cost["width"], cost["height"]) == (640, 480) else f", {cost['width']} x {cost['height']} pixels"
    return f"{cost['device']} ({cost['machine']}{threads}{size})"


def _find_front(rows: Sequence[_Row], score: str, place: str) -> list[int]:
    """Positions of rows measured at `place` that no other beats in latency and score."""
    there = [position for position, row in enumerate(rows) if row.place == place and score in row.scores]
    front = find_front([rows[one].costs[LATENCY] for one in there], [rows[one].scores[score] for one in there])
    return [there[one] for one in front]


def _draw(rows: Sequence[_Row], score: str, front: Sequence[int], place: str, shared: Sequence[str]) -> ScatterChart:
    spots = [Spot(row.costs[LATENCY], row.scores.get(score, math.nan), row.name, row.place) for row in rows]
    theirs = [(one, one.mean(shared or DATASETS)) for one in list_checkpoints() if one.costs]
    spots += [Spot(one.costs[LATENCY], values[score], one.label, PUBLISHED) for one, values in theirs]
    title, caption = TITLES_AND_CAPTIONS[score]
    where = ", ".join(TITLES[name] for name in shared) or "the paper's five datasets, which are other images than here"
    return ScatterChart(
        title,
        f"{caption} Left and low is better. The dotted line is the Pareto front of what was measured on {place}: "
        f"nothing is lower and further left. Published: scores on {where}, time on another machine, not in the front. "
        "Spots without room for a name have it in the numbers below.",
        tuple(spots),
        x_axis="opening and first click, ms",
        y_axis=SHOWN[score],
        front=tuple(front),
        log_x=True,
    )


def _tabulate(rows: Sequence[_Row], fronts: Mapping[str, Sequence[int]], shared: Sequence[str]) -> Table:
    cells: list[tuple[str | float | None, ...]] = []
    for position, row in enumerate(rows):
        on = [SHOWN[name] for name, front in fronts.items() if position in front]
        values = (*(row.scores.get(name) for name in SHOWN), *(row.costs.get(name) for name in COLUMNS))
        cells.append((row.name, *values, "; ".join(on), row.place))
    for one in list_checkpoints():
        if one.costs:
            scores = one.mean(shared or DATASETS)
            values = (*(scores[name] for name in SHOWN), *(one.costs.get(name) for name in COLUMNS))
            cells.append((one.label, *values, "", PUBLISHED))
    return Table(
        "Costs and scores of every checkpoint",
        "GB: on a GPU the most that torch had allocated, else the most memory of the process, libraries included. "
        "GFLOPs of opening and a click, two per multiplication and addition. Front: scores against latency in which no "
        "other checkpoint is better in both.",
        ("checkpoint", *SHOWN.values(), *COLUMNS, "front", "measured on"),
        tuple(cells),
        decimals=2,
    )


def _describe(runs: Sequence[MeasuredRun], rows: Sequence[_Row], place: str) -> list[str]:
    first = rows[0].content
    words = [
        f"Measured one prompt at a time on {format_count(first['images'], 'image')}, "
        f"{format_count(first['clicks'], 'click')} on each; a run answers many courses together, in less time for each."
    ]
    if elsewhere := [row for row in rows if row.place != place]:
        words.append(f"{format_count(len(elsewhere), 'checkpoint')} measured elsewhere cannot be compared by time.")
    if without := [one for one in runs if one.cost is None]:
        listed = "; ".join(one.name + (f" ({one.problem})" if one.problem else "") for one in without)
        words.append(f"Without a cost: {listed}.")
    return words


COST_MEASURE = CostMeasure(measure_checkpoint, read_costs, build_cost_section)
