"""A study in two display modes that a mixed crowd took part in."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click_crowd import Person, distance_to_mask, open_store, stored_rows, take_part, world_study

from hardlook.collect.study.pictures import read_mask

PEOPLE = {
    "left": Person("pc", leaves_after=2),
    "careless": Person("pc", missed=(0, 1, 2, 3), reaction=120.0, early=2, shows=2),
    "slow": Person("mobile", late=90.0, part="left", pointer="mouse"),
    **{f"pc-{i}": Person("pc", missed=(1,) if i % 6 == 0 else ()) for i in range(23)},
    "working": Person("mobile", leaves_after=3, pointer="pen"),
    **{f"mobile-{i}": Person("mobile", reaction=1400.0) for i in range(16)},
    "absent": Person("pc", batches=0),
}


@pytest.fixture(scope="session")
def gathered(tmp_path_factory):
    """The study, its store, and the participants' ids by name, in the order of joining; no test writes to it."""
    study = world_study(tmp_path_factory.mktemp("gathered"), modes=("text", "cut-out"))
    store, rng = open_store(study), np.random.default_rng(0)
    ids = {}
    for name, person in PEOPLE.items():
        ids[name] = take_part(study, store, person, rng, now=1000.0 + 100 * len(ids))
    yield SimpleNamespace(study=study, store=store, ids=ids)
    store.close()


@pytest.fixture(scope="session")
def recounted(gathered):
    """Every answer as a dict, read past the store and judged one by one: the oracle of all counts."""
    study = gathered.study
    batches = {row["id"]: row for row in stored_rows(study, "batches")}
    trials = {row["id"]: row for row in stored_rows(study, "assignments")}
    found = []
    for answer in stored_rows(study, "answers"):
        trial = trials[answer["assignment"]]
        name, mode = answer["item"].split(".")
        task = study.by_id[name]
        away = distance_to_mask(read_mask(study.file(task.mask)), answer["x"], answer["y"])
        found.append(
            {
                **answer,
                "task": task,
                "mode": mode,
                "batch": batches[trial["batch"]],
                "inside": away == 0,
                "near": away <= study.settings.click_radius,
                "durations": json.loads(answer["durations"]),
            }
        )
    for answer in found:
        batch = answer["batch"]
        of = sum(trial["batch"] == batch["id"] for trial in trials.values())
        hits = sum(other["inside"] for other in found if other["batch"] is batch)
        # 7 of 10, and the same share of a shorter one.
        answer["batch_valid"] = batch["state"] != "open" and 10 * hits >= 7 * of
    return found
