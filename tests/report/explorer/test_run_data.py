import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hardlook.harness.benchmark import LazyUnits
from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.registry import find_benchmark
from hardlook.open_vocabulary.closed_miou import ClosedMiouOptions
from hardlook.report.explorer import run_data, run_index
from hardlook.report.explorer.run_data import RunData
from hardlook.report.explorer.run_index import RunIndex

from .conftest import SCENES


def test_runs_are_found_at_any_depth_with_their_scores(made):
    runs = {run.name: run for run in RunIndex(made).runs()}
    assert {"seg/strange", "seg/ragged"} < set(runs)
    stored = json.loads((made / "seg" / "strange" / "scores.json").read_text())["scores"][0]
    assert runs["seg/strange"].scores[0][:2] == ("miou", stored["value"])
    assert runs["seg/strange"].settings == "stranger=0.4"
    assert runs["seg/strange"].method == "planted-segmenter"


def test_a_run_can_be_served_itself(made):
    (run,) = RunIndex(made / "seg" / "strange").runs()
    assert (run.name, run.problem) == ("strange", "")


def test_keys_stay_the_same_and_differ(made, copied):
    keys = [run.key for run in RunIndex(made).runs()]
    assert keys == [run.key for run in RunIndex(copied).runs()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("what", ["folder", "run.json", "records", "scores.json", "failures.parquet"])
def test_links_that_lead_outside_are_not_followed(copied, tmp_path, what):
    outside = tmp_path / "outside"
    shutil.copytree(copied / "seg" / "strange", outside)
    linked = copied / "linked"
    if what == "folder":
        linked.symlink_to(outside)
        assert "linked" not in {run.name for run in RunIndex(copied).runs()}
        return
    shutil.copytree(outside, linked)
    if (linked / what).is_dir():
        shutil.rmtree(linked / what)
    else:
        (linked / what).unlink()
    (linked / what).symlink_to(outside / what)
    (run,) = [run for run in RunIndex(copied).runs() if run.name == "linked"]
    assert "outside the served folder" in run.problem
    assert str(tmp_path) not in run.problem


def test_hidden_folders_are_left_alone(copied):
    (copied / "seg").rename(copied / ".seg")
    assert not [run for run in RunIndex(copied).runs() if "seg" in run.name]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "null",
        '"text"',
        "[" * 100_000,
        json.dumps({"schema": "other"}),
        json.dumps({"schema": "hardlook.run/1"}),
        "changed: benchmark=1",
        "changed: benchmark={}",
        "changed: model=[]",
        "changed: answers=null",
        "changed: answers={}",
        "changed: options=[]",
        'changed: units="many"',
    ],
)
def test_any_run_json_is_survived(copied, content):
    path = copied / "seg" / "strange" / "run.json"
    if content.startswith("changed: "):
        name, _, value = content.removeprefix("changed: ").partition("=")
        content = json.dumps({**parse_checked_json(path.read_text()), name: json.loads(value)})
    path.write_text(content)
    runs = {run.name: run for run in RunIndex(copied).runs()}
    assert runs["seg/strange"].problem
    assert str(copied) not in runs["seg/strange"].problem
    assert not runs["seg/ragged"].problem


@pytest.mark.parametrize("content", ["", "[]", '{"scores": [{"value": 1}]}', '{"scores": 3}'])
def test_any_scores_json_is_survived(copied, content):
    (copied / "seg" / "strange" / "scores.json").write_text(content)
    (run,) = [run for run in RunIndex(copied).runs() if run.name == "seg/strange"]
    assert (run.scores, run.problem) == ((), "")


def test_new_runs_appear(copied, monkeypatch):
    index = RunIndex(copied)
    before = len(index.runs())
    shutil.copytree(copied / "seg" / "strange", copied / "new")
    assert len(index.runs()) == before
    monkeypatch.setattr(run_index, "FRESH_SECONDS", 0)
    assert len(index.runs()) == before + 1


def test_a_name_that_is_no_text_is_survived(copied):
    name = os.fsdecode(b"b\xff")
    try:
        shutil.copytree(copied / "seg" / "strange", copied / name)
    except OSError:
        pytest.skip("this file system takes only text for names")
    assert "b\N{REPLACEMENT CHARACTER}" in {run.name for run in RunIndex(copied).runs()}


def test_very_many_folders_are_cut_and_it_is_said(copied, monkeypatch):
    monkeypatch.setattr(run_index, "MAX_FOLDERS", 2)
    index = RunIndex(copied)
    index.runs()
    assert index.cut


def test_a_module_that_a_run_names_is_not_loaded(copied, monkeypatch, tmp_path):
    module = tmp_path / "evil_benchmark.py"
    module.write_text("import pathlib\npathlib.Path(__file__).with_name('loaded').touch()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = copied / "seg" / "strange" / "run.json"
    manifest = parse_checked_json(path.read_text())
    manifest["benchmark"]["name"] = "evil_benchmark:THING"
    path.write_text(json.dumps(manifest))
    library = RunData(copied)
    (run,) = [run for run in library.index.runs() if run.name == "seg/strange"]
    assert "there is no installed benchmark called evil_benchmark:THING" in library.problem(run)
    assert not Path(tmp_path / "loaded").exists()
    assert "cannot be loaded" in RunData(copied, ["evil_benchmark:THING"]).problem(run)
    assert (tmp_path / "loaded").exists()


def test_another_version_is_not_opened(copied):
    path = copied / "seg" / "strange" / "run.json"
    manifest = parse_checked_json(path.read_text())
    manifest["benchmark"]["version"] = "0"
    path.write_text(json.dumps(manifest))
    library = RunData(copied)
    (run,) = [run for run in library.index.runs() if run.name == "seg/strange"]
    assert "made by version 0 of closed-miou, this is version 1" in library.problem(run)


def test_units_say_how_many_of_them_the_scores_rest_on(copied):
    path = copied / "seg" / "strange" / "scores.json"
    document = parse_checked_json(path.read_text())
    planned = document["units"]["planned"]
    assert next(run for run in RunIndex(copied).runs() if run.name == "seg/strange").units == str(planned)
    document["units"]["scored"] = planned - 2
    path.write_text(json.dumps(document))
    run = next(run for run in RunIndex(copied).runs() if run.name == "seg/strange")
    assert run.units == f"{planned - 2} of {planned}"
    path.unlink()
    assert next(run for run in RunIndex(copied).runs() if run.name == "seg/strange").units == str(planned)


@pytest.fixture
def strange(made):
    data = RunData(made)
    return data, next(run for run in data.index.runs() if run.name == "seg/strange")


def test_units_are_found_without_listing_all_of_them(strange, monkeypatch):
    data, listed = strange
    monkeypatch.setattr(run_data, "list_stored_units", lambda *given: pytest.fail("all units were listed"))
    rows = data.table(listed).frame.to_dicts()
    assert all(len(data.pictures(listed, row)) == 3 for row in rows[:2])
    assert data.thumbnail(listed, rows[3], "on").startswith(b"\xff\xd8")
    assert data._find_unit(listed, data.state(listed), "scene-0014", patience=0) is None


def change_benchmark(data, listed, **changes):
    """The run's benchmark with other functions."""
    changed = replace(data.benchmark(listed), **changes)
    data._benchmarks.discard(listed.benchmark)
    data._benchmarks.get_or_create(listed.benchmark, lambda: changed)


def test_lazy_units_are_made_only_when_they_are_drawn(strange):
    data, listed = strange
    made, whole = [], find_benchmark("closed-miou").list_units(ClosedMiouOptions(scenes=SCENES))

    def make_payload(place):
        made.append(place)
        return whole[place].payload

    lazy = LazyUnits(len(whole), lambda place: whole[place].id, make_payload)
    change_benchmark(data, listed, find_units=None, list_units=lambda options: lazy)
    rows = data.table(listed).frame.to_dicts()
    assert len(data.pictures(listed, rows[5])) == 3
    assert made == [5]


def test_while_units_are_listed_thumbnails_are_asked_for_again(made, keys, monkeypatch):
    from explorer_requests import Asking

    from hardlook.report.explorer import app

    going, benchmark = threading.Event(), find_benchmark("closed-miou")

    def list_slowly(options):
        going.wait(10)
        return benchmark.list_units(options)

    slow = replace(benchmark, find_units=None, list_units=list_slowly)
    monkeypatch.setattr(run_data, "find_benchmark", lambda name: slow)
    for name in ("THUMBNAIL_PATIENCE_SECONDS", "TRIAL_PATIENCE_SECONDS"):
        monkeypatch.setattr(run_data, name, 0.02)
    ask = Asking(app.make_app(made))
    page = ask(f"/run/{keys['strange']}")
    assert "are being listed: their pictures appear when that is done" in page.words
    assert "data-listing" in page.text
    address = f"/run/{keys['strange']}/thumbnail?id=scene-0003"
    waiting = ask(address)
    assert (waiting.status, waiting.headers["retry-after"]) == (503, "2")
    assert waiting.headers["cache-control"] == "no-store"
    going.set()
    monkeypatch.setattr(run_data, "THUMBNAIL_PATIENCE_SECONDS", 10.0)
    assert ask(address).headers["content-type"] == "image/jpeg"
    assert "being listed" not in ask(f"/run/{keys['strange']}").words


def test_thumbnails_are_drawn_once_and_their_memory_is_bounded(made, monkeypatch):
    monkeypatch.setattr(run_data, "MEBIBYTE", 10_000)
    data = RunData(made)
    listed = next(run for run in data.index.runs() if run.name == "seg/strange")
    drawn, draw = [], data.benchmark(listed).pictures

    def count(unit, record):
        drawn.append(unit.id)
        return draw(unit, record)

    change_benchmark(data, listed, pictures=count)
    rows = data.table(listed).frame.to_dicts()
    for overlay in ("on", "off", "truth", "on"):
        data.thumbnail(listed, rows[0], overlay)
    assert drawn == [rows[0]["unit"]]
    for row in rows:
        data.thumbnail(listed, row, "prediction")
    assert len(data._panels) < len(rows)
