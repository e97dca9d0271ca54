"""The report of RClicks: the cost of clicks off the centre, IoU against clicks, one click, instances, pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.rle import decode
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Record
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Score, Scorecard, find_score
from hardlook.harness.sections import (
    CurveChart,
    DotChart,
    Example,
    Gallery,
    HeatMap,
    Line,
    Picture,
    ScatterChart,
    Section,
    Spot,
    Table,
    score_dot,
)
from hardlook.harness.tally import SHARE, Draws, Entry, estimate_tally
from hardlook.harness.verdicts import judge
from hardlook.metrics.click_robustness import clicks_to_reach, failures
from hardlook.metrics.regions import crop_around
from hardlook.models.roles import Mask
from hardlook.rclicks.clicks.courses import BASE, find_groups, split_draws
from hardlook.rclicks.evaluation import decode_shares, find_worst_group
from hardlook.rclicks.leaderboard import build_leaderboard
from hardlook.rclicks.scores import (
    BY_DRAW,
    TARGET,
    ClickResults,
    Difficulty,
    measure_difficulty,
    read_results,
    tally_datasets,
)
from hardlook.rclicks.units import read_instance
from hardlook.report.formatting import format_count

if TYPE_CHECKING:
    import polars as pl

RESAMPLES = 400  # behind the bands of curves
SHOWN = 6  # instances per gallery
MAX_SPOTS = 1500
COSTS = (("dsb", "dSB"), ("dgr", "dGR"), ("dhh", "dHH"))
TABLED = ("noc85", "noc90", "noc95", "noc90-base", "dsb", "dgr", "dhh", "nof", "nof-base", "auc", "auc-base", "nsr")
SPREADS = (("noc90", "NoC@90"), ("nof", "NoF"), ("auc", "IoU-AuC"), ("sample-iou1", "Sample@1"))
CERTAIN = (0, 158, 115)
GALLERY_TEXT = (
    "Clicks are numbered in their order, green for positive and red for negative ones. In the last picture of a row "
    "green is what all masks agree on after one click, and dots are those clicks."
)


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    table = read_results(records)
    difficulty = measure_difficulty(table)
    clicks = records["clicks"][0].partition(":")[0]
    sections: list[Section | None] = [
        _cost_section(table, scorecard, clicks),
        _group_section(table, scorecard),
        _draw_section(scorecard),
        _boundary_section(scorecard),
        _time_section(scorecard),
        _one_click_section(table, scorecard, difficulty),
        _slice_section(scorecard),
        build_leaderboard(scorecard),
        _gallery_section(table, difficulty),
        _setup_section(records, table),
    ]
    return [section for section in sections if section is not None]


def _slice_values(scorecard: Scorecard, key: str) -> list[str]:
    """The values of slices by this key alone, in the order of the scores."""
    return list(dict.fromkeys(score.slice[key] for score in scorecard.scores if set(score.slice) == {key}))


def _cost_section(table: ClickResults, scorecard: Scorecard, clicks: str) -> Section:
    datasets = _slice_values(scorecard, "dataset")
    slices: list[tuple[str, dict[str, str]]] = [("all instances", {})]
    if len(datasets) > 1:
        slices = [("all datasets", {}), *((name, {"dataset": name}) for name in datasets)]
    rows = [
        score_dot(score, label, title)
        for name, title in COSTS
        for label, where in slices
        if (score := find_score(scorecard, name, **where))
    ]
    caption = (
        "dSB: groups against the centre rule. dGR: the least probable clicks against the most probable ones. "
        "dHH: the improbable half against the probable one. 0 means that it does not matter where one clicks."
    )
    references = (("no difference", 0.0),)
    chart = DotChart("More clicks needed, in %", caption, rows, axis="% more clicks to 90 % IoU", references=references)
    return Section("What clicks off the centre cost", " ".join(_describe_costs(table, scorecard, clicks)), (chart,))


def _describe_costs(table: ClickResults, scorecard: Scorecard, clicks: str) -> list[str]:
    sample, base, spread, range_ = (find_score(scorecard, name) for name in ("noc90", "noc90-base", "dsb", "dgr"))
    if sample is None or base is None or spread is None or range_ is None:
        undefined = [score for score in scorecard.scores if score.name == "dsb" and not score.slice and score.reason]
        return [f"What clicks off the centre cost is undefined: {score.reason}." for score in undefined]
    datasets = " of each dataset" if len(_slice_values(scorecard, "dataset")) > 1 else ""
    words = [
        f"To reach 90 % IoU the centre rule takes {format_fixed(base.value, 2)} clicks and clicks by `{clicks}` take "
        f"{format_fixed(sample.value, 2)}. Instance by instance that is {_format_change(spread)}: the mean of the "
        "ratios of single "
        f"instances{datasets}, which is not the ratio of those two means. {judge(spread).why}".strip(),
        f"Clicks in places that it finds improbable take {_format_change(range_)} than those in probable ones, in the "
        f"mean of ratios too. {judge(range_).why}".strip(),
    ]
    never = [failures(draw.intersection, draw.union, TARGET, "ours").mean() for draw in table.draws]
    if share := float(np.mean(never)):
        words.append(
            f"{format_fixed(100 * share, 0)} % of all courses never reach 90 % and count as {table.iou.shape[2]} "
            "clicks, so that "
            "differences beyond that do not show."
        )
    return words


def _format_change(score: Score) -> str:
    """A change of the number of clicks with its interval.

    >>> _format_change(Score("dsb", 12.34, 9)), _format_change(Score("dsb", -2.0, 9))
    ('12.3 % more clicks', '2.0 % fewer clicks')
    """
    text = f"{format_fixed(abs(score.value), 1)} % {'fewer' if score.value < 0 else 'more'} clicks"
    if score.interval is None:
        return text
    low, high = (format_fixed(bound, 1, sign=True) for bound in (score.interval.low, score.interval.high))
    return f"{text} ({low} to {high} %)".replace("-", "\N{MINUS SIGN}")


def _group_section(table: ClickResults, scorecard: Scorecard) -> Section:
    rows = [("centre", find_score(scorecard, "noc90-base"))]
    rows += [(name, find_score(scorecard, "noc90", group=name)) for name in _slice_values(scorecard, "group")]
    chart = DotChart(
        "Clicks to 90 % IoU by group",
        "From the least probable clicks (top) to the most probable ones; the first row is the centre rule.",
        [score_dot(score, name) for name, score in rows if score is not None],
        axis="clicks to 90 % IoU",
    )
    return Section("Who needs more clicks", "", (_draw_curves(table), chart, _draw_group_map(table)))


def _draw_section(scorecard: Scorecard) -> Section | None:
    """Each draw's scores, and the spread between draws beside that between groups; None of a run with one draw."""
    draws = _slice_values(scorecard, "draw")
    if not draws:
        return None
    rows = [(draw, *(_find_value(scorecard, name, draw=draw) for name in BY_DRAW)) for draw in draws]
    columns = [[value for value in column if value is not None] for column in list(zip(*rows, strict=True))[1:]]
    rows.append(("spread", *(float(np.std(values, ddof=1)) if len(values) > 1 else None for values in columns)))
    datasets = _slice_values(scorecard, "dataset")
    slices: list[tuple[str, dict[str, str]]] = [("all datasets", {})] if len(datasets) > 1 else []
    slices += [(name, {"dataset": name}) for name in datasets]
    spreads = [
        (where, title, *(_find_value(scorecard, f"{name}-{kind}", **chosen) for kind in ("std", "draw-std")))
        for where, chosen in slices
        for name, title in SPREADS
    ]
    caption = "The last row is the standard deviation between the draws (n - 1): what another seed would change."
    beside = (
        "Between groups: by where people click. Between draws: by chance, for one group. Standard deviations, means "
        "over instances; between groups as published (n), between draws with n - 1."
    )
    text = f"Every group clicked {len(draws)} times; scores are means over the draws."
    tables = (
        Table("Scores of each draw", caption, ("draw", *BY_DRAW), rows, 2),
        Table("Spread between groups and between draws", beside, ("dataset", "of", "groups", "draws"), spreads, 3),
    )
    return Section("What is chance", text, tables)


def _boundary_section(scorecard: Scorecard) -> Section | None:
    names = ("auc", "boundary-auc", "boundary-f", "auc-base", "boundary-auc-base", "boundary-f-base")
    rows = _dataset_rows(scorecard, names)
    if all(row[2] is None for row in rows):
        return None
    text = (
        "Areas under the curves against clicks, x 100: IoU of the whole masks, IoU of the bands within 2 % of the "
        "diagonal along their boundaries (Cheng et al. 2021), and F of the contours within .8 % of it (DAVIS)."
    )
    columns = ("dataset", "IoU", "boundary IoU", "boundary F", "IoU, centre", "boundary IoU, centre", "F, centre")
    return Section("Along the boundary", text, (Table("Boundaries", "", columns, rows, 2),))


def _time_section(scorecard: Scorecard) -> Section | None:
    rows = _dataset_rows(scorecard, ("time90", "time90-base"))
    sampled, centre = rows[0][1:]
    if sampled is None or centre is None:
        return None
    text = (
        f"To 90 % IoU the model computes for {format_fixed(float(sampled), 2)} s with sampled clicks and for "
        f"{format_fixed(float(centre), 2)} s with the centre rule, by the times of `--cost`: the opening of the image "
        "and every click."
    )
    table = Table("Seconds to 90 % IoU", "", ("dataset", "sampled clicks", "centre clicks"), rows, 3)
    return Section("Time to a mask", text, (table,))


def _dataset_rows(scorecard: Scorecard, names: Sequence[str]) -> list[tuple[str | float | None, ...]]:
    """Each score over all datasets, then of each dataset where there are several."""
    datasets = _slice_values(scorecard, "dataset")
    rows = [("all", *(_find_value(scorecard, name) for name in names))]
    if len(datasets) > 1:
        rows += [(one, *(_find_value(scorecard, name, dataset=one) for name in names)) for one in datasets]
    return rows


def _find_value(scorecard: Scorecard, name: str, **where: str) -> float | None:
    score = find_score(scorecard, name, **where)
    return None if score is None else score.value


def _one_click_section(table: ClickResults, scorecard: Scorecard, difficulty: Difficulty) -> Section:
    datasets = _slice_values(scorecard, "dataset")
    names = ("user-iou1", "user-iou1-std", "sample-iou1", "sample-iou1-std", "base-iou1", "nsr1")
    rows = []
    for dataset in ([""] if len(datasets) > 1 else []) + datasets:
        where = {"dataset": dataset} if dataset else {}
        scores = [find_score(scorecard, name, **where) for name in names]
        counts = (scores[0].n if scores[0] else 0, scores[4].n if scores[4] else 0)
        rows.append((dataset or "all datasets", *(score.value if score else None for score in scores), *counts))
    whose = f"User@1 is of {table.whose}. " if table.whose != "no people" else "People's own clicks were not given. "
    columns = ("dataset", "User@1", "spread", "Sample@1", "spread of groups", "Base@1", "NSR@1 %")
    counted = ("clicked by people", "instances")
    caption = "IoU x 100: people, groups of the click model, centre rule."
    blocks = (Table("After one click", caption, (*columns, *counted), rows, 2), _scatter(table, difficulty))
    return Section("One click", f"{whose}Difficulty is measured over {difficulty.clicks}.", blocks)


def _scatter(table: ClickResults, difficulty: Difficulty) -> ScatterChart:
    chosen = np.linspace(0, len(table) - 1, min(len(table), MAX_SPOTS)).round().astype(int)
    several = len(set(table.dataset.tolist())) > 1
    return ScatterChart(
        "Mean against spread of the IoU after one click",
        "One spot per instance. Right and low: any click will do. Left: no click does. High: it depends on the click."
        + ("" if len(chosen) == len(table) else f" {len(chosen)} of {len(table)} instances are drawn."),
        [
            Spot(float(mean), float(deviation), table.units[row], str(table.dataset[row]) if several else "")
            for row, mean, deviation in zip(chosen, difficulty.mean[chosen], difficulty.deviation[chosen], strict=True)
        ],
        x_axis="mean IoU",
        y_axis="standard deviation",
    )


def _slice_section(scorecard: Scorecard) -> Section | None:
    blocks = []
    for key, title in (("dataset", "By dataset"), ("size", "By size of the object")):
        values = _slice_values(scorecard, key)
        if len(values) < 2:
            continue
        rows = []
        for value in values:
            scores = [find_score(scorecard, name, **{key: value}) for name in TABLED]
            number = next((score.n for score in scores if score is not None), 0)
            rows.append((value, number, *(score.value if score else None for score in scores)))
        caption = "Sizes are shares of the frame: small below 1 %, medium below 10 %." if key == "size" else ""
        blocks.append(Table(title, caption, (key, "instances", *TABLED), rows, 2))
    return Section("Slices", "", blocks) if blocks else None


def _setup_section(records: pl.DataFrame, table: ClickResults) -> Section:
    words = sorted({text.rstrip(".") for text in records["conduct"].to_list()} - {""})
    images = len(set(zip(table.dataset.tolist(), table.image.tolist(), strict=True)))
    text = f"The model: {'; '.join(words)}. " if words else ""
    text += f"Clicks: `{records['clicks'][0]}`. "
    text += f"{len(table)} instances of {images} images; the model opened images {int(records['opened'].sum())} times. "
    if fallbacks := int(records["fallbacks"].sum()):
        text += f"{fallbacks} clicks fell back to the centre, since the click model left nothing to choose from."
    return Section("How it was driven", text)


def _draw_curves(table: ClickResults) -> CurveChart:
    """The centre rule, the least and the most probable group, and the mean over groups, with bands."""
    groups = table.groups
    lines = {
        "centre": table.mean_iou[:, table.base],
        table.courses[groups[0]]: table.mean_iou[:, groups[0]],
        "all groups": table.mean_iou[:, groups].mean(1),
        table.courses[groups[-1]]: table.mean_iou[:, groups[-1]],
    }
    rounds = table.iou.shape[2]
    drawn = []
    for name, values in lines.items():
        tally = tally_datasets(values, table, [Entry("iou", len(table), range=SHARE)] * rounds, ("rclicks", "curves"))
        band = estimate_tally(tally, Draws(resamples=RESAMPLES))
        low, high = [one.interval.low for one in band], [one.interval.high for one in band]
        drawn.append(Line(name, range(1, rounds + 1), [one.value for one in band], low, high))
    caption = (
        "Mean IoU, over datasets where there are several. The first group clicks in the places that the click model "
        "finds least probable, the last in the most probable ones. Bands: 95 %, over images."
    )
    return CurveChart("IoU against clicks", caption, drawn, x_axis="clicks", y_axis="IoU")


def _draw_group_map(table: ClickResults) -> HeatMap:
    """Mean IoU of every course after some of its clicks."""
    rounds = table.iou.shape[2]
    shown = sorted({round(step) for step in np.linspace(1, rounds, min(rounds, 8))})
    flat = table.mean_iou.reshape(len(table), -1)
    tally = tally_datasets(flat, table, [Entry("iou", len(table))] * flat.shape[1], ("rclicks", "map"))
    return HeatMap(
        "IoU of every group",
        "Rows from the centre rule to the most probable group, columns by number of clicks.",
        ["centre" if name == BASE.name else name for name in table.courses],
        [str(step) for step in shown],
        tally.values()[0].reshape(len(table.courses), rounds)[:, [step - 1 for step in shown]].tolist(),
        row_axis="who clicks",
        column_axis="clicks",
        decimals=3,
    )


def _gallery_section(table: ClickResults, difficulty: Difficulty) -> Section:
    """The instances whose result depends most on the click, and those where clicks off the centre cost most."""
    order = np.argsort(-difficulty.ratio, kind="stable")
    order = order[difficulty.deviation[order] > 0]  # without a spread it does not matter which click it is
    lost = table.mean_iou[:, table.base].mean(1) - table.mean_iou[:, table.groups].mean((1, 2))
    shown = (
        Gallery(
            "Where it matters most which click it is",
            f"Highest spread over mean of the IoU after one click, over {difficulty.clicks}.",
            _examples(table, order[:SHOWN], difficulty),
        ),
        Gallery(
            "Clicks off the centre cost most",
            "Mean IoU of the centre rule less that of the groups, highest first.",
            _examples(table, np.argsort(-lost, kind="stable")[: min(SHOWN, int((lost > 0).sum()))], difficulty),
        ),
    )
    return Section("Where the click decided", GALLERY_TEXT, tuple(gallery for gallery in shown if gallery.examples))


def _examples(table: ClickResults, rows: NDArray[np.int64], difficulty: Difficulty) -> tuple[Example, ...]:
    return tuple(
        Example(
            table.units[row],
            f"After one click IoU {format_fixed(difficulty.mean[row], 2)}, spread "
            f"{format_fixed(difficulty.deviation[row], 2)}; "
            f"at the end {format_fixed(table.mean_iou[row, table.base, -1], 2)} by the centre rule, "
            f"{format_fixed(table.mean_iou[row, table.groups, -1].min(), 2)} to "
            f"{format_fixed(table.mean_iou[row, table.groups, -1].max(), 2)} by groups.",
        )
        for row in rows.tolist()
    )


def describe_unit(record: Record) -> str:
    """The object's size, and how many clicks the centre rule and the groups needed.

    >>> record = {"dataset": "grabcut", "size": "large", "pixels": 1500, "courses": "base,G1,G2", "rounds": 3}
    >>> record |= {"intersection": [8, 9, 9, 7, 7, 8, 9, 9, 9], "union": [10] * 9}
    >>> describe_unit(record)  # doctest: +NORMALIZE_WHITESPACE
    'A large object of 1,500 pixels (grabcut): the centre rule needs 2 clicks to 90 % IoU, 1 of 2 groups needs 1, and
    1 does not get there in 3.'
    """
    courses, rounds = str(record["courses"]).split(","), int(record["rounds"])
    hits, either = (np.reshape(record[name], (len(courses), rounds)) for name in ("intersection", "union"))
    noc, never = clicks_to_reach(hits, either, TARGET), failures(hits, either, TARGET, "ours")
    groups, base = find_groups(courses), courses.index(BASE.name)
    centre = "does not reach" if never[base] else f"needs {format_count(int(noc[base]), 'click')} to"
    words = f"A {record['size']} object of {record['pixels']:,} pixels ({record['dataset']}): the centre rule {centre} "
    several = len(split_draws(courses))
    drawn = f", in the first of {several} draws" if several > 1 else ""
    return f"{words}{TARGET} % IoU, {_describe_groups(noc[groups], never[groups], rounds)}{drawn}."


def _describe_groups(noc: NDArray[np.int64], never: NDArray[np.bool_], rounds: int) -> str:
    """How many clicks the groups that get there need, and how many do not."""
    there, lost = noc[~never], int(never.sum())
    if not len(there):
        return f"and none of {len(noc)} groups does in {rounds} clicks"
    who = f"{len(there)} of {len(noc)} groups" if lost else f"all {len(noc)} groups"
    span = f"{there.min()}" if there.min() == there.max() else f"{there.min()} to {there.max()}"
    words = f"{who} {'needs' if len(there) == 1 else 'need'} {span}"
    return f"{words}, and {lost} {'does' if lost == 1 else 'do'} not get there in {rounds}" if lost else words


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """The object, the last masks of the centre rule and of the worst group, and the mean mask after one click."""
    instance = read_instance(unit.payload)
    courses, rounds = record["courses"].split(","), record["rounds"]
    shape = (len(courses), rounds)
    ious = np.reshape(record["intersection"], shape) / np.maximum(np.reshape(record["union"], shape), 1)
    worst = find_worst_group(courses, ious)
    base_mask, worst_mask = (decode(mask) for mask in json.loads(record["last_masks"]))
    pictures = [Picture("the object", instance.image, mask=instance.target)]
    for place, name, mask in ((0, "centre clicks", base_mask), (worst, courses[worst], worst_mask)):
        at = slice(place * rounds, (place + 1) * rounds)
        rows = zip(record["x"][at], record["y"][at], record["positive"][at], strict=True)
        clicks = [(float(x), float(y), bool(positive)) for x, y, positive in rows if x >= 0]
        label = f"{name}: IoU {format_fixed(ious[place, -1], 2)} after {len(clicks)}"
        pictures.append(Picture(label, instance.image, mask=mask, points=clicks))
    pictures.append(_draw_mean_mask(record, instance.image))
    return [_crop(picture, instance.target) for picture in pictures]


def _crop(picture: Picture, target: Mask) -> Picture:
    """The part of a picture around the object, wide enough for all clicks on it."""
    places = [(x, y) for x, y, _ in picture.points]
    close = crop_around(target, points=places)
    image = close.cut(picture.image)
    points = [(*moved, sign) for moved, (_, _, sign) in zip(close.moved(places), picture.points, strict=True)]
    return replace(picture, image=image, mask=None if picture.mask is None else close.cut(picture.mask), points=points)


def _draw_mean_mask(record: Record, image: NDArray[np.uint8]) -> Picture:
    """The mean mask over the picture in grey: green where all masks agree on the object, paler where few do."""
    shares = cv2.resize(decode_shares(record["mean_mask"]), image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)[..., None] * 0.55 + 60
    share = shares[..., None] * 0.8
    drawn = grey * (1 - share) + np.asarray(CERTAIN, np.float32) * share
    image = np.asarray(np.rint(drawn.clip(0, 255)), np.uint8)
    places = list(zip(record["user_x"], record["user_y"], strict=True))
    label = f"mean mask over clicks of {len(places)} {record['people']}"
    if not places:
        rounds = record["rounds"]
        firsts = slice(rounds, (len(find_groups(record["courses"].split(","))) + 1) * rounds, rounds)
        places = list(zip(record["x"][firsts], record["y"][firsts], strict=True))
        label = "mean mask over the groups' first clicks"
    return Picture(label, image, points=[(float(x), float(y), True) for x, y in places if x >= 0], ordered=False)
