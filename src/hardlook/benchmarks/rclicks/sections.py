"""What the report of RClicks shows: what clicks off the centre cost, who needs more of them, one click, instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.rclicks.curves import group_map, iou_curves
from hardlook.benchmarks.rclicks.difficulty import Difficulty, difficulty_of
from hardlook.benchmarks.rclicks.galleries import galleries
from hardlook.benchmarks.rclicks.leaderboard import leaderboard
from hardlook.benchmarks.rclicks.played import Played, played
from hardlook.contract.scorecard import Scorecard, found
from hardlook.contract.sections import DotChart, ScatterChart, Section, Spot, Table, dot_of
from hardlook.metrics.click_counts import failures

if TYPE_CHECKING:
    import polars as pl

MOST_SPOTS = 1500
COSTS = (("dsb", "dSB"), ("dgr", "dGR"), ("dhh", "dHH"))
TABLED = ("noc85", "noc90", "noc95", "noc90-base", "dsb", "dgr", "dhh", "nof", "nof-base", "auc", "auc-base", "nsr")


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    table = played(records)
    difficulty = difficulty_of(table)
    who = records["clicks"][0].partition(":")[0]
    sections: list[Section | None] = [
        _costs(table, scorecard, who),
        _curves(table, scorecard),
        _one_click(table, scorecard, difficulty),
    ]
    sections += [_slices(scorecard), leaderboard(scorecard), galleries(table, difficulty), _conduct(records, table)]
    return [section for section in sections if section is not None]


def _named(scorecard: Scorecard, *keys: str) -> list[str]:
    """The values that slices of exactly these keys have, in the order of the scores."""
    found = [tuple(score.slice[key] for key in keys) for score in scorecard.scores if set(score.slice) == set(keys)]
    return ["/".join(values) for values in dict.fromkeys(found)]


def _costs(table: Played, scorecard: Scorecard, who: str) -> Section:
    rows = []
    datasets = _named(scorecard, "dataset")
    for name, title in COSTS:
        whole = found(scorecard, name)
        if whole is not None:
            rows.append(dot_of(whole, "all datasets" if len(datasets) > 1 else "all instances", title))
        if len(datasets) > 1:
            parts = [(dataset, found(scorecard, name, dataset=dataset)) for dataset in datasets]
            rows += [dot_of(score, dataset, title) for dataset, score in parts if score is not None]
    chart = DotChart(
        "More clicks needed, in %",
        "dSB: groups against the centre rule. dGR: the least probable clicks against the most probable ones. "
        "dHH: the improbable half against the probable one. 0 means that it does not matter where one clicks.",
        tuple(rows),
        axis="% more clicks to 90 % IoU",
        references=(("no difference", 0.0),),
    )
    text = " ".join(_cost_words(table, scorecard, who))
    return Section("What clicks off the centre cost", text, (chart,))


def _cost_words(table: Played, scorecard: Scorecard, who: str) -> list[str]:
    sample, base, spread, range_ = (found(scorecard, name) for name in ("noc90", "noc90-base", "dsb", "dgr"))
    if sample is None or base is None or spread is None or range_ is None:
        return []
    datasets = " of each dataset" if len(_named(scorecard, "dataset")) > 1 else ""
    words = [
        f"To reach 90 % IoU the centre rule takes {base.value:.2f} clicks and clicks by `{who}` take "
        f"{sample.value:.2f}: {_more(spread.value)}, in the mean over instances{datasets}.",
        f"Clicks in places that it finds improbable take {_more(range_.value)} than those in probable ones.",
    ]
    share = _never_reached(table)
    if share:
        words.append(
            f"{100 * share:.0f} % of all courses never reach 90 % and count as {table.iou.shape[2]} clicks, so that "
            "more cannot be told apart there."
        )
    return words


def _never_reached(table: Played) -> float:
    """The share of courses that end below 90 % in every round."""
    return float(failures(table.intersection, table.union, 90, "ours").mean())


def _more(percent: float) -> str:
    """A change of the number of clicks in words.

    >>> _more(12.34), _more(-2.0)
    ('12.3 % more clicks', '2.0 % fewer clicks')
    """
    return f"{abs(percent):.1f} % {'fewer' if percent < 0 else 'more'} clicks"


def _curves(table: Played, scorecard: Scorecard) -> Section:
    rows = [("base", found(scorecard, "noc90-base"))]
    rows += [(name, found(scorecard, "noc90", group=name)) for name in _named(scorecard, "group")]
    chart = DotChart(
        "Clicks to 90 % IoU by group",
        "From the least probable clicks (top) to the most probable ones; the first row is the centre rule.",
        tuple(dot_of(score, "centre" if name == "base" else name) for name, score in rows if score is not None),
        axis="clicks to 90 % IoU",
    )
    return Section("Who needs more clicks", "", (iou_curves(table), chart, group_map(table)))


def _one_click(table: Played, scorecard: Scorecard, difficulty: Difficulty) -> Section:
    datasets = _named(scorecard, "dataset")
    names = ("user-iou1", "user-iou1-std", "sample-iou1", "sample-iou1-std", "base-iou1", "nsr1")
    rows = []
    for dataset in ([""] if len(datasets) > 1 else []) + datasets:
        where = {"dataset": dataset} if dataset else {}
        scores = [found(scorecard, name, **where) for name in names]
        counts = (scores[0].n if scores[0] else 0, scores[4].n if scores[4] else 0)
        rows.append((dataset or "all datasets", *(score.value if score else None for score in scores), *counts))
    whose = f"User@1 is of {table.whose}. " if table.whose != "nobody" else "Nobody's own clicks were given. "
    columns = (
        "dataset",
        "User@1",
        "spread",
        "Sample@1",
        "spread of groups",
        "Base@1",
        "NSR@1 %",
        "clicked by people",
        "instances",
    )
    blocks = (
        Table("After one click", "IoU x 100: people, groups of the click model, centre rule.", columns, tuple(rows), 2),
        _scatter(table, difficulty),
    )
    return Section("One click", f"{whose}Difficulty is measured over {difficulty.who}.", blocks)


def _scatter(table: Played, difficulty: Difficulty) -> ScatterChart:
    chosen = np.linspace(0, len(table) - 1, min(len(table), MOST_SPOTS)).round().astype(int)
    several = len(set(table.dataset.tolist())) > 1
    return ScatterChart(
        "Mean against spread of the IoU after one click",
        "One spot an instance. Right and low: any click will do. Left: no click does. High: it depends on the click."
        + ("" if len(chosen) == len(table) else f" {len(chosen)} of {len(table)} instances are drawn."),
        tuple(
            Spot(
                float(difficulty.mean[row]),
                float(difficulty.deviation[row]),
                table.units[row],
                str(table.dataset[row]) if several else "",
            )
            for row in chosen
        ),
        x_axis="mean IoU",
        y_axis="standard deviation",
    )


def _slices(scorecard: Scorecard) -> Section | None:
    blocks = []
    for key, title in (("dataset", "By dataset"), ("size", "By size of the object")):
        values = _named(scorecard, key)
        if len(values) < 2:
            continue
        rows = []
        for value in values:
            scores = [found(scorecard, name, **{key: value}) for name in TABLED]
            number = next((score.n for score in scores if score is not None), 0)
            rows.append((value, number, *(score.value if score else None for score in scores)))
        caption = "Sizes are shares of the frame: small below 1 %, medium below 10 %." if key == "size" else ""
        blocks.append(Table(title, caption, (key, "instances", *TABLED), tuple(rows), 2))
    return Section("Slices", "", tuple(blocks)) if blocks else None


def _conduct(records: pl.DataFrame, table: Played) -> Section:
    words = sorted({text.rstrip(".") for text in records["conduct"].to_list()} - {""})
    images = len(set(zip(table.dataset.tolist(), table.image.tolist(), strict=True)))
    text = f"The model: {'; '.join(words)}. " if words else ""
    text += f"Clicks: `{records['clicks'][0]}`. "
    text += f"{len(table)} instances of {images} images; images were opened {int(records['opened'].sum())} times. "
    fallbacks = int(records["fallbacks"].sum())
    if fallbacks:
        text += f"{fallbacks} clicks fell back to the centre, since the click model left nothing to choose from."
    return Section("How it was driven", text)
