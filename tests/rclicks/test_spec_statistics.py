"""Section 6 of the specification in plain loops over the records of a run, against every score of its scorecard.

The run is of a planted world in two datasets, by a model that is good, bad and useless by turns, so that thresholds are
reached early, late, at the last click and never.
"""

import itertools
import json
import math
import zlib

import numpy as np
import PIL.Image
import polars as pl
import pytest

from hardlook.data.click_file import check_clicks, write_clicks
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.models.planted.disc import Disc
from hardlook.models.roles import Prompted
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.scores import SCORES, measure_difficulty, read_results
from hardlook.world.layouts import write_world

ROUNDS, SIZE = 5, (80, 64)

READINGS = [("released", "released"), ("ours", "released"), ("released", "paper"), ("ours", "paper")]


class Moody:
    """The planted model with a share of its mask taken away, drawn by the clicks; on one picture all of it."""

    def __init__(self, hopeless):
        self.hopeless = hopeless

    def open(self, image):
        inner, picture = Disc(fragility=0.3).open(image), zlib.crc32(image.tobytes())
        shares = [1.0] if (image == self.hopeless).all() else [0.0, 0.04, 0.08, 0.12, 0.3, 1.0]

        class Session:
            def predict(self, prompts):
                answers = []
                for prompt, answer in zip(prompts, inner.predict(prompts), strict=True):
                    rng = np.random.default_rng([picture, *prompt.points.astype(int).ravel()])
                    lost = rng.choice(shares)
                    answers.append(Prompted(answer.mask & (rng.random(answer.mask.shape) >= lost), answer.state))
                return answers

        return Session()


def clicks_on(folder, stem, count):
    """Points (count, 2), x and y, on an object."""
    object_pixels = np.argwhere(np.asarray(PIL.Image.open(folder / "boundary_GT" / f"{stem}.png")) > 128)
    return np.random.default_rng(count).choice(object_pixels, count)[:, 1::-1]


def write_people(path, people):
    """A clicks.csv of first clicks: {(dataset, stem): points}."""
    rows = [
        {
            "dataset": dataset, "image_stem": stem, "object_stem": "", "click_type": "first", "model_type": "",
            "full_stem": stem, "device": "pc", "x": float(x), "y": float(y), "w": SIZE[0], "h": SIZE[1],
        }
        for (dataset, stem), points in people.items() for x, y in points
    ]  # fmt: skip
    write_clicks(path, check_clicks(pl.DataFrame(rows)))
    return path


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    """The records of the run, without pictures."""
    folder = tmp_path_factory.mktemp("spec")
    data = {"grabcut": folder / "first", "mine": folder / "second"}
    for seed, (path, count) in enumerate(zip(data.values(), (7, 4), strict=True)):
        write_world(path, "isegm", seed=seed, count=count, size=SIZE)
    # From no person to seven on an instance; one person misses.
    people = {("grabcut", f"00000{n}"): clicks_on(data["grabcut"], f"00000{n}", n) for n in range(1, 8) if n != 4}
    people |= {("mine", f"00000{n}"): clicks_on(data["mine"], f"00000{n}", 5) for n in (2, 3)}
    people["mine", "000003"][0] = (0, 0)
    clicks = write_people(folder / "clicks.csv", people)
    given = {"data": data, "user_clicks": str(clicks), "rounds": ROUNDS, "halves": True, "clicks": "uniform"}
    run = InMemoryRun("rclicks", {**given, "resamples": 0})
    [hopeless] = [unit for batch in run.prepared for unit in batch.units if unit.id == "grabcut/000005"]
    model = Moody(hopeless.payload.instance.image)
    rows = [row for batch in run.prepared for row in RCLICKS.evaluate(batch.units, model)]
    return RCLICKS.schema.frame(rows).select(RCLICKS.schema.light).sort("unit")


def mean(values):
    return sum(values) / len(values) if values else math.nan


def deviation(values):
    return math.sqrt(sum((value - mean(values)) ** 2 for value in values) / len(values))


def noc(counts, percent):
    """The first click that reaches so many per cent, decided on whole numbers; else the last."""
    reached = [100 * i >= percent * u for i, u in counts]
    return reached.index(True) + 1 if True in reached else len(reached)


def fails(counts, reading):
    return noc(counts, 90) == len(counts) if reading == "released" else all(100 * i < 90 * u for i, u in counts)


def area(counts):
    heights = [100 * i / u for i, u in counts]
    return sum((a + b) / 2 for a, b in itertools.pairwise(heights)) / (len(heights) - 1)


def courses_of(row):
    """{course: [(intersection, union) of each round]}."""
    names, size = row["courses"].split(","), row["rounds"]
    pairs = list(zip(row["intersection"], row["union"], strict=True))
    return {name: pairs[place * size : (place + 1) * size] for place, name in enumerate(names)}


def expected_scores(rows, nof, dhh):
    """Every score of one dataset by name; NaN where no instance has one."""
    played_by = [courses_of(row) for row in rows]
    groups = [f"G{g}" for g in range(1, 11)]
    halves = list(zip(groups[:5], groups[5:], strict=True)) if dhh == "released" else [("lower", "upper")]
    scores = {}
    for percent in (85, 90, 95):
        scores[f"noc{percent}"] = mean([mean([noc(p[g], percent) for g in groups]) for p in played_by])
        scores[f"noc{percent}-base"] = mean([noc(p["base"], percent) for p in played_by])
    reach = [{name: noc(counts, 90) for name, counts in p.items()} for p in played_by]
    areas = [{name: area(counts) for name, counts in p.items()} for p in played_by]
    failed = {name: sum(fails(p[name], nof) for p in played_by) for name in played_by[0]}
    scores["noc90-std"] = mean([deviation([n[g] for g in groups]) for n in reach])
    scores["dsb"] = 100 * mean([(mean([n[g] for g in groups]) - n["base"]) / n["base"] for n in reach])
    scores["dgr"] = 100 * mean([(n["G1"] - n["G10"]) / n["G10"] for n in reach])
    scores["dhh"] = 100 * mean([(n[low] - n[high]) / n[high] for n in reach for low, high in halves])
    totals = [failed[g] for g in groups]
    scores |= {"nof": mean(totals), "nof-std": deviation(totals), "nof-base": failed["base"]}
    scores["dsb-nof"] = mean(totals) - failed["base"]
    scores["dgr-nof"] = failed["G1"] - failed["G10"]
    scores["dhh-nof"] = mean([failed[low] - failed[high] for low, high in halves])
    scores["auc"] = mean([mean([a[g] for g in groups]) for a in areas])
    scores["auc-std"] = mean([deviation([a[g] for g in groups]) for a in areas])
    scores["auc-base"] = mean([a["base"] for a in areas])
    scores["dsb-iou"] = scores["auc"] - scores["auc-base"]
    scores["dgr-iou"] = mean([a["G1"] - a["G10"] for a in areas])
    scores["dhh-iou"] = mean([a[low] - a[high] for a in areas for low, high in halves])
    scores["nsr"] = mean(ratios([[a[g] for g in groups] for a in areas]))
    firsts = [[100 * p[g][0][0] / p[g][0][1] for g in groups] for p in played_by]
    scores |= {"sample-iou1": mean(list(map(mean, firsts))), "sample-iou1-std": mean(list(map(deviation, firsts)))}
    scores["base-iou1"] = mean([100 * p["base"][0][0] / p["base"][0][1] for p in played_by])
    people = [ious for ious in map(people_of, rows) if ious]
    several = [ious for ious in people if len(ious) > 1]  # one click has no spread; the words leave this open
    scores |= {"user-iou1": mean(list(map(mean, people))), "user-iou1-std": mean(list(map(deviation, several)))}
    return scores | {"nsr1": mean(ratios(several))}


def people_of(row):
    return [100 * i / u for i, u in zip(row["user_intersection"], row["user_union"], strict=True)]


def ratios(rows):
    """Deviation over mean in per cent; a row of zeros has none and does not count."""
    return [100 * deviation(row) / mean(row) for row in rows if mean(row)]


def by_dataset(rows):
    names = sorted({row["dataset"] for row in rows})
    return {name: [row for row in rows if row["dataset"] == name] for name in names}


def test_the_run_has_all_that_the_formulas_tell_apart(frame):
    """Else equal scores would show little: early and late, the last click and never, perfect masks and zeros."""
    rows = frame.to_dicts()
    counts = [course for row in rows for course in courses_of(row).values()]
    assert {noc(course, 90) for course in counts} == set(range(1, ROUNDS + 1))
    assert {fails(course, "released") - fails(course, "ours") for course in counts} == {0, 1}
    assert any(-1 in row["x"] for row in rows)
    assert any(all(i == 0 for course in courses_of(row).values() for i, _ in course) for row in rows)
    assert {len(people_of(row)) for row in rows} >= {0, 1, 7}


@pytest.mark.parametrize(("nof", "dhh"), READINGS)
def test_every_score_is_its_formula(frame, nof, dhh):
    card = RCLICKS.score(frame, RClicksOptions(resamples=0, halves=True, reading={"nof": nof, "dhh": dhh}))
    # Through text, as a user who has only the exported records would read them.
    datasets = by_dataset(json.loads(json.dumps(frame.to_dicts())))
    expected = {name: expected_scores(rows, nof, dhh) for name, rows in datasets.items()}
    optional = ("-draw-std", "boundary-", "time90")
    names = {meaning.name for meaning in SCORES}
    assert set(expected["grabcut"]) == {name for name in names if not any(part in name for part in optional)}
    for dataset, scores in expected.items():
        for name, value in scores.items():
            assert card.get(name, dataset=dataset).value == pytest.approx(value, abs=1e-9, nan_ok=True), (dataset, name)
    # Over several datasets: the mean of theirs, each with the same weight. A spread of counts exists for one alone.
    for name in set(expected["grabcut"]) - {"nof-std"}:
        value = mean([scores[name] for scores in expected.values() if not math.isnan(scores[name])])
        assert card.get(name).value == pytest.approx(value, abs=1e-9), name


def test_each_group_has_its_clicks_and_its_area(frame):
    card = RCLICKS.score(frame, RClicksOptions(resamples=0, halves=True))
    datasets = by_dataset(frame.to_dicts())
    for group in (f"G{g}" for g in range(1, 11)):
        played_by = [[courses_of(row)[group] for row in rows] for rows in datasets.values()]
        clicks = mean([mean([noc(counts, 90) for counts in courses]) for courses in played_by])
        areas = mean([mean(list(map(area, courses))) for courses in played_by])
        assert card.get("noc90", group=group).value == pytest.approx(clicks)
        assert card.get("auc", group=group).value == pytest.approx(areas)


def test_each_size_is_scored_over_its_instances(frame):
    card = RCLICKS.score(frame, RClicksOptions(resamples=0, halves=True))
    rows = frame.to_dicts()
    for size in {row["size"] for row in rows}:
        expected = expected_scores([row for row in rows if row["size"] == size], "released", "released")
        for name in set(expected) - {"nof-std"}:
            assert card.get(name, size=size).value == pytest.approx(expected[name], abs=1e-9, nan_ok=True), (size, name)


def test_difficulty_of_an_instance_is_its_deviation_over_its_mean(frame):
    rows = [row for row in frame.to_dicts() if len(people_of(row)) > 1]
    difficulty = measure_difficulty(read_results(frame.filter(pl.col("unit").is_in([row["unit"] for row in rows]))))
    for ratio, ious in zip(difficulty.ratio, map(people_of, rows), strict=True):
        assert ratio == pytest.approx(deviation(ious) / mean(ious) if mean(ious) else math.inf)
