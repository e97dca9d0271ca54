import json
import os
import shutil
from pathlib import Path

import pytest

from hardlook.harness.checked_json import parse_checked_json
from hardlook.report.explorer import run_index
from hardlook.report.explorer.run_data import RunData
from hardlook.report.explorer.run_index import RunIndex


def test_runs_are_found_at_any_depth_with_their_scores(made):
    runs = {run.name: run for run in RunIndex(made).runs()}
    assert {"seg/strange", "seg/ragged"} < set(runs)
    stored = json.loads((made / "seg" / "strange" / "scores.json").read_text())["scores"][0]
    assert runs["seg/strange"].scores[0][:2] == ("miou", stored["value"])
    assert runs["seg/strange"].settings == "stranger=0.4"
    assert runs["seg/strange"].model == "planted-segmenter"


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
