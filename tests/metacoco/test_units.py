"""Tasks that are looked up by their ids, as the explorer does, without listing all of them."""

import pytest

import hardlook as hl
from hardlook.metacoco.benchmark import METACOCO
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.report.explorer.run_data import RunData

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("more", [{}, {"ways": (2, 5), "shots": (1, 2), "modes": ("blind",)}])
def test_tasks_that_are_found_by_id_are_those_of_the_list(written, more):
    for data in ({}, {"root": written}):
        options = MetaCocoOptions(data=data, **{"tasks": 3, "queries": 1, "repeats": 2, "shots": (1,), **more})
        listed = {unit.id: unit for unit in METACOCO.list_units(options)}
        assert METACOCO.find_units(options, list(listed)) == listed
    first = next(iter(listed))
    strange = [first.replace("00000", "00006"), first.replace("00000", "000000"), first.replace("way", "Way"), "9" * 99]
    strange += [first.replace("1shot", "3shot"), "3way-1shot-blind-00000", "2way-1shot-other-00000", f"{first}\n", ""]
    assert METACOCO.find_units(options, [first, *strange]) == {first: listed[first]}


def test_the_explorer_draws_a_task_without_listing_all_of_them(written, tmp_path, monkeypatch):
    given = {"tasks": 4, "shots": "1", "queries": 2, "repeats": 1, "modes": "blind", "resamples": 0, "progress": False}
    hl.run("metacoco", model="planted-learner", data=written, out=tmp_path / "runs" / "a", report=False, **given)

    def refuse(*given):
        raise AssertionError("all units are listed")

    monkeypatch.setattr("hardlook.report.explorer.run_data.list_stored_units", refuse)
    data = RunData(tmp_path / "runs")
    (listed,) = data.index.runs()
    row = data.table(listed).frame.row(0, named=True)
    assert data.thumbnail(listed, row, "both")[:3] == b"\xff\xd8\xff"
