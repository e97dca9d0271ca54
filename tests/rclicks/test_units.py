"""People's clicks on instances of a real layout: joined by name, scaled, counted where they find nobody."""

import numpy as np
import polars as pl
import pytest

from hardlook.data.click_file import check_clicks, write_clicks
from hardlook.errors import DataError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.units import list_units
from hardlook.world.layouts import write_world

SIZE = (160, 120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("planted") / "grabcut"
    write_world(out, "isegm", seed=3, count=3)
    return out


def clicks(path, rows):
    """A clicks.csv of (dataset, stem, click type, device, x, y)."""
    frame = pl.DataFrame(
        [
            {
                "dataset": dataset, "image_stem": stem, "object_stem": "", "click_type": kind,
                "model_type": "" if kind == "first" else "sam",
                "full_stem": stem if kind == "first" else f"{stem}_sam_{kind}_{device}_0",
                "device": device, "x": x, "y": y, "w": SIZE[0], "h": SIZE[1],
            }
            for dataset, stem, kind, device, x, y in rows
        ]
    )  # fmt: skip
    write_clicks(path, check_clicks(frame))
    return path


def test_first_clicks_are_joined_by_dataset_and_stem(folder, tmp_path):
    rows = [
        ("GrabCut", "000001", "first", "pc", 10.0, 20.0),
        ("GrabCut", "000001", "first", "mobile", 30.0, 40.0),
        ("GrabCut", "000001", "fn", "pc", 50.0, 60.0),
        ("GrabCut", "000009", "first", "pc", 1.0, 1.0),
        ("Berkeley", "000002", "first", "pc", 1.0, 1.0),
    ]
    units = list_units(RClicksOptions(data={"grabcut": folder}, user_clicks=str(clicks(tmp_path / "c.csv", rows))))
    first, second, third = (unit.payload for unit in units)
    assert first.people.tolist() == [[10.0, 20.0], [30.0, 40.0]]
    assert first.mobile.tolist() == [False, True]
    assert second.people is None
    assert third.people is None
    notes = {note.what: note for note in units.left_out}
    assert notes["stems of people's clicks"].examples == ("grabcut/000009",)
    assert notes["datasets of people's clicks"].examples == ("Berkeley",)
    assert notes["people's clicks of later rounds (fn, fp)"].count == 1


def test_rows_that_a_file_holds_twice_are_noted_and_count(folder, tmp_path):
    rows = [("GrabCut", "000001", "first", "pc", 10.0, 20.0), ("GrabCut", "000001", "first", "pc", 11.0, 20.0)]
    path = clicks(tmp_path / "c.csv", 2 * rows)
    units = list_units(RClicksOptions(data={"grabcut": folder}, user_clicks=str(path)))
    assert len(units[0].payload.people) == 4
    [note] = units.left_out
    assert (note.what, note.count, note.kept) == ("clicks that equal an earlier row", 2, True)


def test_clicks_that_meet_no_instance_are_refused(folder, tmp_path):
    path = clicks(tmp_path / "c.csv", [("DAVIS", "1", "first", "pc", 1.0, 1.0)])
    with pytest.raises(DataError, match=r"no first click.*grabcut"):
        list_units(RClicksOptions(data={"grabcut": folder}, user_clicks=str(path)))


def test_clicks_on_a_turned_image_are_refused_by_stem(folder, tmp_path):
    path = clicks(tmp_path / "c.csv", [("GrabCut", "000002", "first", "pc", 1.0, 1.0)])
    frame = pl.read_csv(path, infer_schema=False).with_columns(w=pl.lit("120"), h=pl.lit("160"))
    frame.write_csv(path)
    with pytest.raises(DataError, match="120x160") as caught:
        list_units(RClicksOptions(data={"grabcut": folder}, user_clicks=str(path)))
    assert caught.value.unit == "grabcut/000002"
    assert caught.value.remedy


def test_every_person_has_an_iou_of_their_own(folder, tmp_path):
    """One click on the object, one far from it: the planted model finds all of it, and none."""
    units = list_units(RClicksOptions(data={"grabcut": folder}))
    rows, expected = [], {}
    for unit in units:
        target = unit.payload.source.read_target().mask
        y, x = np.argwhere(target)[target.sum() // 2]
        rows += [("GrabCut", unit.payload.name, "first", "pc", float(x), float(y))]
        rows += [("GrabCut", unit.payload.name, "first", "pc", 0.0, 0.0)]
        expected[unit.id] = [1.0, 0.0]
    given = {"data": {"grabcut": folder}, "user_clicks": str(clicks(tmp_path / "c.csv", rows)), "rounds": 2}
    records = InMemoryRun("rclicks", {**given, "resamples": 0}).records("disc")
    for row in records.to_dicts():
        ious = np.divide(row["user_intersection"], row["user_union"])
        assert ious.tolist() == expected[row["unit"]]


def test_simulated_people_click_the_same_in_every_run(folder):
    given = {"data": {"grabcut": folder}, "user_clicks": "planted", "rounds": 1, "resamples": 0}
    one, other = (InMemoryRun("rclicks", given).records("disc") for _ in range(2))
    assert one["user_x"].to_list() == other["user_x"].to_list()
    assert one["user_x"].list.len().to_list() == [24, 24, 24]


def test_at_most_draws_instances_and_says_so(folder):
    units = list_units(RClicksOptions(data={"grabcut": folder}, at_most=2))
    assert len(units) == 2
    assert any(note.count == 1 for note in units.left_out)
