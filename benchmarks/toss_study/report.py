"""What the study found: scores, what each selection of training images changes, support ablations, salience, pictures.

Every number is read from the run folders. Differences over seeds are those of `hl.compare`; a score of several seeds is
their mean, and its interval has the variance over images (the mean of the seeds') and that between seeds.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw
import scipy.stats

import hardlook as hl
from hardlook.harness.sections import CurveChart, Dot, DotChart, Line, ScatterChart, Spot
from hardlook.report.charts.standalone import standalone_svg
from hardlook.toss.published import read_numbers
from toss_study.classes import list_associations, list_class_means, list_classes, measure_shares, score_classes
from toss_study.plan import SELECTIONS

PRINTED = {"simpropnet": "Baseline", "rpmm": "RPMM", "pfenet": "PFENet", "repri": "RePRI", "hsnet": "HSNet"}
"""The rows of TOSS's table 4: networks trained at full scale, on all published pairs."""
KINDS = ("toss", "support", "saliency")
ALL = SELECTIONS[0]
FLOOR = "-floor"
AT = "-at"
"""Between the name of a training and the threshold of its masks, in the name of a run."""


def find_published(network: str, score: str) -> float | None:
    """What the paper prints for a network, as a share; None where it prints nothing.

    >>> find_published("pfenet", "lca")
    0.5975
    """
    if network not in PRINTED or score not in ("lca", "hca", "scs"):
        return None
    return read_numbers().scores[PRINTED[network]][score]


def list_runs(study: Path, kind: str) -> dict[str, list[Any]]:
    """The finished runs of a benchmark, those of all seeds of a network and a selection together."""
    found: dict[str, list[Any]] = {}
    for folder in sorted((study / "runs").glob(f"*-{kind}")):
        if (folder / "scores.json").is_file():
            name = folder.name.removesuffix(f"-{kind}")
            found.setdefault(name.rpartition("-seed")[0] or name, []).append(hl.load(folder))
    return found


def list_threshold_runs(study: Path) -> dict[str, list[Any]]:
    """The runs with another threshold, those of all seeds together, by names such as `pfenet-all-at0.3`."""
    found: dict[str, list[Any]] = {}
    for folder in sorted((study / "runs").glob(f"*-seed*{AT}*")):
        if (folder / "scores.json").is_file():
            training, _, threshold = folder.name.rpartition(AT)
            found.setdefault(f"{training.rpartition('-seed')[0]}{AT}{threshold}", []).append(hl.load(folder))
    return found


def join_seeds(scores: Sequence[Any]) -> dict[str, Any]:
    """The mean of a score over seeds, with an interval of 95 %."""
    values = np.array([one.value for one in scores])
    bounds = [one.interval for one in scores if one.interval is not None]
    between = float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
    over_images = np.mean([((one.high - one.low) / 3.92) ** 2 for one in bounds]) if bounds else math.nan
    error = math.sqrt(over_images + between)
    value = float(values.mean())
    return {
        "value": value, "low": value - 1.96 * error, "high": value + 1.96 * error, "seeds": len(values),
        "between_seeds": float(values.std(ddof=1)) if len(values) > 1 else math.nan, "units": scores[0].n,
    }  # fmt: skip


def list_scores(runs: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """A row per method, score and slice without classes: value, interval, and the published value of the network."""
    rows = []
    for name, seeds in runs.items():
        cards = [{(one.name, tuple(one.slice.items())): one for one in run.scorecard.scores} for run in seeds]
        for (score, where), first in cards[0].items():
            if "class" in dict(where) or math.isnan(first.value):
                continue
            found = join_seeds([card[score, where] for card in cards])
            slices = " ".join(f"{key}={value}" for key, value in where)
            printed = None if where else find_published(name.split("-")[0], score)
            rows.append({"method": name, "score": score, "slice": slices, **found, "published": printed})
    return rows


def list_compared(names: Sequence[str]) -> list[tuple[str, str]]:
    """Which methods are compared: each remedy with the training on all images, and that with each floor.

    >>> list_compared(["pfenet-all", "pfenet-sgtss", "whole-image-floor", "pfenet-all-at0.3", "pfenet-sgtss-at0.3"])
    [('pfenet-sgtss', 'pfenet-all'), ('pfenet-all', 'whole-image-floor'), ('pfenet-sgtss-at0.3', 'pfenet-all-at0.3')]
    """
    floors = [name for name in names if name.endswith(FLOOR)]
    pairs = []
    for base in names:
        method, at, threshold = base.partition(AT)
        if method.endswith(f"-{ALL}"):
            remedies = [f"{method.removesuffix(ALL)}{selection}{at}{threshold}" for selection in SELECTIONS[1:]]
            pairs += [(remedy, base) for remedy in remedies if remedy in names]
            pairs += [(base, floor) for floor in floors if not at]
    return pairs


def match_areas(runs: Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    """Each remedy, and the training on all images with the threshold that gives it masks of the most similar area."""
    pairs = []
    for remedy in (name for name in runs if AT not in name and name.endswith(SELECTIONS[1:])):
        base = f"{remedy.split('-')[0]}-{ALL}"
        known = [name for name in runs if name == base or name.startswith(f"{base}{AT}")]
        nearest = min(known, key=lambda name: abs(measure_area(runs[name]) - measure_area(runs[remedy])), default=base)
        pairs += [(remedy, nearest)] if nearest != base else []
    return pairs


def measure_area(seeds: Sequence[Any]) -> float:
    """The mean share of the query that the masks of tier 1 cover."""
    import polars as pl

    share = pl.col("predicted") / pl.col("pixels")
    return float(np.mean([run.records.filter(pl.col("tier") == 1).select(share).to_series().mean() for run in seeds]))


def compare_methods(runs: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Differences over seeds on the same pairs, per score and slice without classes.

    `smallest` is the least effect that would be found at a level of .05 with a power of .8.
    """
    rows = []
    for name, less in [*list_compared(list(runs)), *match_areas(runs)]:
        first, second = runs[name], runs[less]
        if not less.endswith(FLOOR):
            seeds = min(len(first), len(second))
            first, second = first[:seeds], second[:seeds]
        compared = hl.compare(first, second, names=(name, less), swaps=999)
        for one in compared.comparison.differences:
            if "class" in one.slice or math.isnan(one.value):
                continue
            seen = sum(scipy.stats.t.ppf(level, one.freedom) for level in (0.975, 0.8)) * one.standard_error
            low, high = (one.interval.low, one.interval.high) if one.interval else (math.nan, math.nan)
            rows.append(
                {"method": name, "less": less, "score": one.name,
                 "slice": " ".join(f"{key}={value}" for key, value in one.slice.items()), "difference": one.value,
                 "low": low, "high": high, "p": one.p_value, "adjusted": one.adjusted, "smallest": float(seen),
                 "seeds": len(first)}
            )  # fmt: skip
    return rows


def list_masks(runs: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """A row per run of tier 1: its LCA and HCA, and how large its masks are."""
    import polars as pl

    rows = []
    for name, seeds in runs.items():
        for run in seeds:
            own = run.records.filter(pl.col("tier") == 1)
            sums = {column: int(own[column].sum()) for column in ("intersection", "predicted", "truth")}
            rows.append(
                {"method": name.partition(AT)[0], "threshold": name.partition(AT)[2] or "0.5", "run": run.folder.name,
                 "lca": run.scores["lca"].value, "hca": run.scores["hca"].value,
                 "empty": float((own["predicted"] == 0).mean()), "predicted_share": measure_area([run]),
                 "true_share": float((own["truth"] / own["pixels"]).mean()),
                 "precision": sums["intersection"] / max(sums["predicted"], 1),
                 "recall": sums["intersection"] / sums["truth"]}
            )  # fmt: skip
    return rows


def study_classes(
    network: str, runs: Mapping[str, Sequence[Any]], train: Path, test: Path
) -> dict[str, list[dict[str, Any]]]:
    """Classes, associations and class means of a network; nothing where a selection has no run."""
    if not all(f"{network}-{one}" in runs for one in SELECTIONS):
        return {}
    scored = {one: score_classes(runs[f"{network}-{one}"]) for one in SELECTIONS}
    folds = len(set(runs[f"{network}-{ALL}"][0].records["fold"].to_list()))
    shares = measure_shares(train, test, scored[ALL].names, folds)
    means = []
    for at in ["", *dict.fromkeys(AT + name.partition(AT)[2] for name in runs if AT in name)]:
        if all(f"{network}-{one}{at}" in runs for one in SELECTIONS):
            seen = {one: score_classes(runs[f"{network}-{one}{at}"]) for one in SELECTIONS} if at else scored
            threshold = at.removeprefix(AT) or "0.5"
            means += [{"threshold": threshold, **row} for row in list_class_means(seen, shares)]
    floor = runs.get(f"prototype{FLOOR}")
    untrained = score_classes(floor) if floor else None
    return {
        "classes": list_classes(scored, shares),
        "associations": list_associations(scored, shares, untrained=untrained),
        "class-means": means,
    }


def read_curves(study: Path) -> list[dict[str, Any]]:
    """A row per training, fold and validation: step, loss, and IoU on the images held back."""
    rows = []
    for path in sorted((study / "weights").glob("*/fold*/history.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            own = {"step": line["step"], "loss": line["loss"], "held_back_iou": line.get("validation_held-back")}
            rows.append({"training": path.parts[-3], "fold": path.parts[-2].removeprefix("fold"), **own})
    return rows


def draw_scores(rows: Sequence[Mapping[str, Any]]) -> DotChart:
    """LCA and HCA of every method."""
    chosen = [(score, row) for score in ("lca", "hca") for row in rows if row["score"] == score and not row["slice"]]
    dots = [Dot(row["method"], row["value"], row["low"], row["high"], score.upper()) for score, row in chosen]
    return DotChart("LCA and HCA on the published pairs at hand", "", dots, "weighted mIoU")


def draw_support(rows: Sequence[Mapping[str, Any]]) -> DotChart:
    """What is left of the mIoU under each support, beside the paper's."""
    dots = [
        Dot(row["slice"].removeprefix("support="), row["value"], row["low"], row["high"], row["method"])
        for row in rows
        if row["score"] == "left"
    ]
    printed = read_numbers().supports
    for name in dict.fromkeys(dot.label for dot in dots):
        dots.append(Dot(name, printed[name].mean / printed["correct"].mean, group="the paper's Baseline"))
    return DotChart("Share of the mIoU that is left when the support misleads", "", dots, "share")


def draw_classes(rows: Sequence[Mapping[str, Any]], selection: str = "leave-out") -> ScatterChart:
    """What a selection changes in the IoU of a class, against the share of training masks that show it."""
    spots = [
        Spot(row["share_of_masks"], row[f"{selection}_less_{ALL}_value"], row["class"], f"fold {row['fold']}")
        for row in rows
    ]
    axis = f"IoU with {selection} minus IoU with {ALL}"
    return ScatterChart(
        f"Does {selection} help the classes that were background?", "", spots, "share of training masks", axis
    )


def draw_curves(rows: Sequence[Mapping[str, Any]]) -> CurveChart:
    """IoU on images held back, the mean over folds and seeds of each network and selection."""
    groups: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if row["held_back_iou"] is not None:
            name = row["training"].rpartition("-seed")[0]
            groups.setdefault(name, {}).setdefault(row["step"], []).append(row["held_back_iou"])
    lines = [
        Line(name, [float(step) for step in steps], [float(np.mean(values)) for values in steps.values()])
        for name, steps in groups.items()
    ]
    return CurveChart("IoU on training classes of images held back", "", lines, "step", "mean IoU")


def draw_followed(run: Any, count: int = 4, side: int = 230) -> PIL.Image.Image:
    """Pairs of a run of bias-saliency in which the mask has more of what is salient than of the target.

    The pairs with the largest IoU of the mask with the salient region less that with the target; one per query image
    and class.
    """
    import polars as pl

    both = pl.col("predicted") + pl.col("salient") - pl.col("predicted_salient")
    truth = pl.col("predicted") + pl.col("truth") - pl.col("intersection")
    lead = pl.col("predicted_salient") / both - pl.col("intersection") / truth
    plain = run.records.filter((pl.col("condition") == "plain") & (pl.col("salient") > 0) & (pl.col("predicted") > 0))
    ranked = plain.with_columns(lead.alias("lead")).sort("lead", descending=True).unique("class", maintain_order=True)
    units = ranked["unit"].to_list()[:count]
    rows = [[PIL.Image.fromarray(paint(picture)) for picture in run.unit(unit).pictures[:3]] for unit in units]
    for tile in (tile for row in rows for tile in row):
        tile.thumbnail((side - 6, side - 6))
    heights = [max(tile.height for tile in row) + 6 for row in rows]
    sheet = PIL.Image.new("RGB", (3 * side, 18 + sum(heights)), "white")
    pen = PIL.ImageDraw.Draw(sheet)
    for column, title in enumerate(("support and its mask", "query and the target", "what the network found")):
        pen.text((column * side + 4, 3), title, fill="black")
    for place, row in enumerate(rows):
        for column, tile in enumerate(row):
            sheet.paste(tile, (column * side + 3, 18 + sum(heights[:place]) + 3))
    return sheet


def paint(picture: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The picture with its mask in colour."""
    image = np.array(picture.image, np.float64)
    if picture.mask is not None:
        image[picture.mask] = 0.45 * image[picture.mask] + 0.55 * np.array([255, 0, 200])
    return image.astype(np.uint8)


def write_report(study: Path, docs: Path | None, train: Path, test: Path, name: str = "toss-study") -> str:
    """Write tables and pictures beside the study and, where `docs` is given, there; the scores as text.

    The names of all files begin with `name`.
    """
    runs = {kind: list_runs(study, kind) for kind in KINDS}
    masks = {**runs["toss"], **list_threshold_runs(study)}
    tables: dict[str, list[dict[str, Any]]] = {
        "scores": list_scores(runs["toss"]),
        "differences": compare_methods(masks),
        "support": list_scores(runs["support"]),
        "saliency": list_scores(runs["saliency"]),
        "masks": list_masks(masks),
        "training": read_curves(study),
    }
    charts: dict[str, Any] = {"scores": draw_scores(tables["scores"]), "training": draw_curves(tables["training"])}
    if tables["support"]:
        charts["support"] = draw_support(tables["support"])
    for network in dict.fromkeys(method.split("-")[0] for method in runs["toss"]):
        for pairs, given in {"": masks, "-drawn": runs["support"]}.items():
            found = study_classes(network, given, train, test)
            tables |= {f"{table}-{network}{pairs}": rows for table, rows in found.items()}
            if found:
                charts[f"classes-{network}{pairs}"] = draw_classes(found["classes"])
    pictures = docs / "images" if docs is not None else study
    for place in [study, *([docs] if docs is not None else [])]:
        for table, rows in tables.items():
            if rows:
                (place / f"{name}-{table}.csv").write_text(format_csv(rows))
    for table, chart in charts.items():
        (pictures / f"{name}-{table}.svg").write_text(standalone_svg(chart, width=200, filled=True))
    for method, seeds in runs["saliency"].items():
        if not method.endswith(FLOOR):
            draw_followed(seeds[0]).save(pictures / f"{name}-salience-{method}.jpg", quality=85)
    return format_scores(tables["scores"])


def format_scores(rows: Sequence[Mapping[str, Any]]) -> str:
    """The scores over all pairs as a table in Markdown."""
    lines = ["| method | score | value | seeds |", "|---|---|---|---|"]
    for row in rows:
        if not row["slice"]:
            value = f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            lines.append(f"| {row['method']} | {row['score']} | {value} | {row['seeds']} |")
    return "\n".join(lines)


def format_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV; empty without any."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()})
    return text.getvalue()
