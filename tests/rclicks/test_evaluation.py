"""Every option reaches what it is for, and every image is opened once: on a folder with several objects an image."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import PIL.Image
import polars as pl
import pytest
from killed_runs import whole_records

from hardlook.data.click_file import check_clicks, write_clicks
from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.models.planted.disc import Disc
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.units import list_units, prepare_unit
from hardlook.world.planted import PlantedWorld

# Scenes of the world that have five, three and three objects, and one with a single object under two names.
SCENES = {"street": 1, "table": 10, "yard": 11, "bus": 6, "coach": 6}

INSTANCES, IMAGES = 13, 4

SHORT = {"rounds": 2, "groups": 2, "resamples": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """As TETRIS stores its objects: img and masks, one integer an object."""
    out = tmp_path_factory.mktemp("wiring") / "tetris"
    world = PlantedWorld(seed=0, count=12)
    for name in ("img", "masks"):
        (out / name).mkdir(parents=True)
    for stem, index in SCENES.items():
        rendered = world[index]
        labels = np.zeros(rendered.classes.shape, np.uint8)
        for number, thing in enumerate(rendered.scene.objects, 1):
            labels[rendered.mask_of(thing)] = number
        PIL.Image.fromarray(rendered.image).save(out / "img" / f"{stem}.png")
        PIL.Image.fromarray(labels).save(out / "masks" / f"{stem}.png")
    return out


def areas(folder):
    """Pixels of every object by the name of its instance."""
    found = {}
    for path in (folder / "masks").iterdir():
        labels = np.asarray(PIL.Image.open(path))
        found |= {f"{path.stem}_______{number}": int((labels == number).sum()) for number in range(1, labels.max() + 1)}
    return found


def units_of(folder, **given):
    return list_units(RClicksOptions(**{"data": {"tetris": folder}, **SHORT, **given}))


class Watched:
    """The planted model, which notes how many prompts each call had."""

    def __init__(self):
        self.calls = []

    def open(self, image):
        inner, calls = Disc(fragility=0.8, blunt=0.5).open(image), self.calls

        class Session:
            def predict(self, prompts):
                calls.append(len(prompts))
                return inner.predict(prompts)

        return Session()


def write_people(path, rows, factor):
    """A clicks.csv of first clicks (image, object, x, y), made on images enlarged by `factor`."""
    frame = pl.DataFrame(
        [
            {
                "dataset": "TETRIS", "image_stem": image, "object_stem": number, "click_type": "first",
                "model_type": "", "full_stem": f"{image}_______{number}", "device": "pc", "x": x, "y": y,
                "w": 160 * factor, "h": 120 * factor,
            }
            for image, number, x, y in rows
        ]
    )  # fmt: skip
    write_clicks(path, check_clicks(frame))
    return str(path)


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_an_image_with_more_objects_than_a_batch_is_opened_once(folder, tmp_path, monkeypatch, forked_workers, engine):
    opened, opens = Counter(), Disc.open

    def counting(self, image):
        opened[image.tobytes()] += 1
        return opens(self, image)

    monkeypatch.setattr(Disc, "open", counting)
    given = {"data": {"tetris": folder}, **SHORT}
    settings = RunSettings(engine=EngineOptions(engine, workers=2))
    launch("rclicks", out=tmp_path / "run", model="disc", given=given, batch_size=2, settings=settings)
    rows = pl.concat([pl.read_parquet(part) for part in RunFolder(tmp_path / "run").records_path.glob("part-*")])
    assert len(rows) == INSTANCES
    times = rows.group_by("image").agg(pl.col("opened").sum(), pl.len())
    assert times["opened"].to_list() == [1] * IMAGES
    assert sorted(times["len"].to_list()) == [2, 3, 3, 5]
    if engine == "inline":
        # Processes of their own count for themselves.
        assert sorted(opened.values()) == [1] * IMAGES


class Stops(Disc):
    """Stops the run after a number of calls, as Ctrl-C does."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def fingerprint(self):
        return "stops"

    def open(self, image):
        session = super().open(image)

        def predict(prompts):
            self.calls -= 1
            if self.calls < 0:
                raise KeyboardInterrupt
            return session.predict(prompts)

        return SimpleNamespace(predict=predict)


@pytest.mark.parametrize("objects", [6, 9])
def test_a_run_that_is_stopped_inside_of_a_batch_keeps_what_is_done_and_goes_on_there(folder, tmp_path, objects):
    given = {"data": {"tetris": folder}, "user_clicks": "none", **SHORT}

    def run(name, calls):
        model = Stops(calls)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hardlook.models.registry.build", lambda *names, **more: model)
            done = launch("rclicks", out=tmp_path / name, model="disc", given=given, batch_size=INSTANCES)
        return done, calls - model.calls

    _, calls = run("whole", 10**9)
    with pytest.raises(KeyboardInterrupt):
        run("stopped", stop := 1 + objects * calls // INSTANCES)
    kept = len(whole_records(tmp_path / "stopped"))
    # Of the objects that were clicked on, only those under way are lost; at most four are at once.
    assert objects - 4 <= kept < INSTANCES
    done, more = run("stopped", 10**9)
    assert (done.progress.before, done.progress.answered) == (kept, INSTANCES - kept)
    assert more + stop <= calls + 4 * (calls // INSTANCES + 1)
    assert whole_records(tmp_path / "stopped").equals(whole_records(tmp_path / "whole"))


def test_units_of_one_picture_are_one_group_and_no_others(folder):
    groups = {}
    for unit in units_of(folder):
        groups.setdefault(unit.group, set()).add(unit.id.split("/")[1].split("_")[0])
    # Two files with the same bytes are one picture.
    assert sorted(map(sorted, groups.values())) == [["bus", "coach"], ["street"], ["table"], ["yard"]]


@pytest.mark.parametrize(("most", "first", "people"), [(1, 1, 1), (2, 2, 2), (64, 3, 64), (100, 3, 70)])
def test_no_call_has_more_prompts_than_were_asked_for(folder, tmp_path, most, first, people):
    clicks = write_people(tmp_path / "clicks.csv", [("bus", "1", 80.0, 60.0)] * 70, 1)
    unit = next(one for one in units_of(folder, prompts_a_call=most, user_clicks=clicks) if "bus" in one.id)
    model = Watched()
    RCLICKS.evaluate([prepare_unit(unit)], model)
    assert max(model.calls) == people
    assert first in model.calls  # the centre rule and two groups
    assert sum(model.calls) == 70 + 2 * 3


@pytest.mark.parametrize("given", [{"seed": 1}, {"group_rule": "exact"}])
def test_the_seed_and_the_group_rule_reach_the_clicks(folder, given):
    one, other = (
        InMemoryRun("rclicks", {"data": {"tetris": folder}, **SHORT, **more}).records("disc", {"fragility": 0.8})
        for more in ({}, given)
    )
    assert one["unit"].to_list() == other["unit"].to_list()
    places = [list(zip(rows["x"].to_list(), rows["y"].to_list(), strict=True)) for rows in (one, other)]
    assert places[0] != places[1]
    # The centre rule draws nothing.
    centres = [[(x[:2], y[:2]) for x, y in course] for course in places]
    assert centres[0] == centres[1]


def test_clicks_on_an_enlarged_image_land_on_the_same_object(folder, tmp_path):
    labels = np.asarray(PIL.Image.open(folder / "masks" / "street.png"))
    rows, expected = [], {}
    for number in range(1, labels.max() + 1):
        inside = np.argwhere(labels == number)
        y, x = inside[len(inside) // 2].tolist()
        # The pixel's centre on an image of twice its size lies between four pixels.
        rows.append(("street", str(number), 2 * x + 0.5, 2 * y + 0.5))
        expected[f"tetris/street_______{number}"] = ([x], [y], [1.0])
    given = {"data": {"tetris": folder}, **SHORT, "user_clicks": write_people(tmp_path / "clicks.csv", rows, 2)}
    records = InMemoryRun("rclicks", given).records("disc").filter(pl.col("people") != "")
    found = {
        row["unit"]: (row["user_x"], row["user_y"], np.divide(row["user_intersection"], row["user_union"]).tolist())
        for row in records.to_dicts()
    }
    assert found == expected


@pytest.mark.parametrize("least", [0, 500, 1000])
def test_small_objects_are_left_out_where_asked_for(folder, least):
    units = units_of(folder, min_area=least)
    kept = {name for name, area in areas(folder).items() if area >= least}
    assert {unit.payload.name for unit in units} == kept
    assert sum(note.count for note in units.left_out) == INSTANCES - len(kept)


def test_the_seed_draws_the_instances(folder):
    drawn = {tuple(unit.id for unit in units_of(folder, at_most=3, seed=seed)) for seed in range(4)}
    assert {len(units) for units in drawn} == {3}
    assert len(drawn) > 1


def test_simulated_people_are_others_for_each_dataset_instance_and_seed(folder):
    """One and the same object, under two names in two datasets, with two seeds: eight crowds."""
    crowds = []
    for seed in (0, 1):
        given = {"data": {"tetris": folder, "mine": folder}, "user_clicks": "planted", "seed": seed}
        units = [unit for unit in units_of(folder, **given) if unit.payload.name in ("bus_______1", "coach_______1")]
        assert {unit.payload.dataset for unit in units} == {"tetris", "mine"}
        crowds += [prepare_unit(unit).payload.people.tolist() for unit in units]
    assert len(crowds) == len({str(crowd) for crowd in crowds}) == 8
