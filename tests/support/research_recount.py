"""The database looked at row by row, past the store and past the dashboard."""

from __future__ import annotations

import math
import sqlite3
import statistics
from collections import Counter

from hardlook.collect.study.pictures import read_mask


def rows(study, statement):
    connection = sqlite3.connect(study.path / "answers.sqlite")
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(statement)]
    finally:
        connection.close()


def clicks(study):
    """Every click with its task, mode, batch, and whether it counts, judged from the mask pixel by pixel."""
    items = {row["id"]: row for row in rows(study, "SELECT * FROM items")}
    batches = {row["id"]: row for row in rows(study, "SELECT * FROM batches")}
    trials = {row["id"]: row for row in rows(study, "SELECT * FROM assignments")}
    sizes = Counter(trial["batch"] for trial in trials.values())
    found = []
    for answer in rows(study, "SELECT * FROM answers"):
        item, batch = items[answer["item"]], batches[trials[answer["assignment"]]["batch"]]
        task = study.by_id[item["task"]]
        kind = judged(read_mask(study.file(task.mask)), answer["x"], answer["y"], study.settings.click_radius)
        found.append({**answer, "task": item["task"], "mode": item["mode"], "batch": batch, "kind": kind})
    hits = Counter(click["batch"]["id"] for click in found if click["kind"] == "inside")
    for click in found:
        batch = click["batch"]
        enough = hits[batch["id"]] >= math.ceil(study.settings.least_inside * sizes[batch["id"]])
        click["stands"] = batch["state"] != "open" and enough
        click["counts"] = click["stands"] and click["kind"] != "outside"
    return found


def judged(mask, x, y, radius):
    column, row = math.floor(x), math.floor(y)
    if mask[row, column]:
        return "inside"
    away = min(
        math.hypot(column - at, row - down)
        for down in range(mask.shape[0])
        for at in range(mask.shape[1])
        if mask[down, at]
    )
    return "near" if away <= radius else "outside"


def qualities(study):
    """By participant: share inside, median reaction, early clicks and dropped batches, from rows alone."""
    own = clicks(study)
    batches = rows(study, "SELECT * FROM batches")
    found = {}
    for number, person in enumerate(rows(study, "SELECT * FROM participants ORDER BY joined, id"), 1):
        mine = [click for click in own if click["participant"] == person["id"]]
        dropped = [one for one in batches if one["participant"] == person["id"] and one["state"] == "complete"]
        found[person["id"]] = {
            "number": number,
            "answers": len(mine),
            "inside": sum(click["kind"] == "inside" for click in mine) / len(mine) if mine else None,
            "reaction": statistics.median(click["reaction_ms"] for click in mine) if mine else None,
            "early": sum(click["early"] for click in mine),
            "early_share": sum(click["early"] > 0 for click in mine) / len(mine) if mine else None,
            "dropped": sum(not one["valid"] for one in dropped),
        }
    return found
