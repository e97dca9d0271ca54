"""Crowds of one study compared: PC against mobile in each display mode, and each display mode against the text mode.

Distances are relative to the box of the region that was to be clicked: in a first round that is the object's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from hardlook.clicks.device_comparison import PAIR_METRICS, ClickSets, Comparison, compare_crowds, split_by
from hardlook.clicks.evaluation_summary import summarise_rows
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import Judge
from hardlook.errors import DataError
from hardlook.metrics.click_distances import WassersteinReading
from hardlook.regions.boxes import box_of

DEVICES = ("pc", "mobile")
TEXT = "text"


def compare_devices(
    study: Study, clicks: pl.DataFrame, reading: WassersteinReading = "released"
) -> dict[str, Comparison]:
    """PC against mobile by display mode; empty where the study has one device alone.

    `clicks` are answers that count, with the columns task, mode, device, x and y; `reading` is that of WD.
    """
    if not set(DEVICES) <= set(study.settings.devices):
        return {}
    return {
        mode: compare_crowds(
            _click_sets(study, clicks.filter(pl.col("mode") == mode), "device"), *DEVICES, reading=reading
        )
        for mode in study.settings.modes
    }


def compare_modes(
    study: Study, clicks: pl.DataFrame, reading: WassersteinReading = "released"
) -> dict[str, Comparison]:
    """Each other display mode against the text mode, devices together; empty where there is no text mode or no other.

    As above; a mode is compared on the tasks that somebody clicked in it.
    """
    modes = study.settings.modes
    if TEXT not in modes:
        return {}
    sets = list(_click_sets(study, clicks, "mode"))
    return {
        mode: compare_crowds((one for one in sets if mode in one.clicks), mode, TEXT, reading=reading)
        for mode in modes
        if mode != TEXT
    }


def comparison_document(found: Mapping[str, Comparison]) -> dict[str, Any]:
    """Means over stems by name, with intervals over images; null where no stem has enough clicks.

    >>> comparison_document({"text": Comparison((), 3)})
    {'text': {'stems': 0, 'too_few': 3, 'ks_undefined': 0, 'ks': None, 'pl1': None, 'wd': None}}
    """
    told: dict[str, Any] = {}
    for name, comparison in found.items():
        whole = next(iter(summarise_rows(comparison.rows, PAIR_METRICS)), None)
        told[name] = {
            "stems": len(comparison.rows),
            "too_few": comparison.too_few,
            "ks_undefined": sum(row.ks_undefined for row in comparison.rows),
            **{metric: _estimate(whole.scores[metric]) if whole else None for metric in PAIR_METRICS},
        }
    return told


def _estimate(estimate: Any) -> dict[str, float | None]:
    interval = estimate.interval if estimate.interval.defined else None
    return {
        "value": estimate.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }


def _click_sets(study: Study, clicks: pl.DataFrame, crowd: str) -> Iterable[ClickSets]:
    judge = Judge(study)
    grouped = clicks.group_by("task", maintain_order=True).agg("x", "y", pl.col(crowd).alias("crowd"))
    for name, xs, ys, crowds in grouped.sort("task").iter_rows():
        task = study.by_id[name]
        box = box_of(judge.mask(name))
        if not isinstance(task, ClickTask) or box is None:
            raise DataError("the region to click is empty", file=study.path, unit=name, remedy="make the study anew")
        points = [(float(x // 1), float(y // 1)) for x, y in zip(xs, ys, strict=True)]
        yield ClickSets(
            task.dataset,
            task.full_stem,
            (box.width, box.height),
            split_by(points, crowds),
            task.click_type,
            task.subject,
        )
