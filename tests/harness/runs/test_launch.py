import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from small_runs import all_records, scores_text, small_run

from hardlook.errors import OptionError, RunError
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import score_run
from hardlook.world.layouts import write_world

TROUBLED = "troubled_segmenters:"


def test_a_run_leaves_everything_that_is_documented(tmp_path):
    done = small_run(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {".lock", "run.json", "records", "sessions", "failures.parquet", "scores.json"}
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["units"] == 12
    assert manifest["options"]["scenes"] == 12
    assert manifest["model"]["args"]["stranger"] == 0.3
    (session,) = manifest["sessions"]
    assert session["outcome"] == "finished"
    assert session["answered"] == 12
    assert session["started"] <= session["ended"]
    assert {"cores", "system"} <= set(session["hardware"])
    assert {"python", "numpy", "hardlook"} <= set(session["versions"])
    assert done.progress.open == 0
    assert len(pl.read_parquet(tmp_path / "run" / "failures.parquet")) == 0


def test_the_same_command_again_answers_nothing_anew(tmp_path):
    small_run(tmp_path)
    first = scores_text(tmp_path)
    again = small_run(tmp_path)
    assert (again.progress.answered, again.progress.before) == (0, 12)
    assert scores_text(tmp_path) == first


def test_lost_records_are_answered_again_and_alike(tmp_path):
    small_run(tmp_path / "whole", batch_size=2)
    small_run(tmp_path / "torn", batch_size=2)
    part = next(RunFolder(tmp_path / "torn").records_path.glob("part-*"))
    kept = pl.read_parquet(part).filter(pl.col("unit").is_in(["scene-0001", "scene-0004", "scene-0005"]))
    kept.write_parquet(part)
    done = small_run(tmp_path / "torn", batch_size=2)
    assert done.progress.answered == 9
    assert all_records(tmp_path / "torn").equals(all_records(tmp_path / "whole"))
    assert scores_text(tmp_path / "torn") == scores_text(tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"scenes": 13}, "option scenes: 12 in the folder, 13 now"),
        ({"args": {"stranger": 0.4}}, "model args"),
        ({"batch_size": 5}, "batch size: 4 in the folder, 5 now"),
        ({"given": {"seed": 1}}, "option seed: 0 in the folder, 1 now"),
    ],
)
def test_a_change_of_units_or_answers_is_refused_with_the_difference(tmp_path, change, named):
    small_run(tmp_path)
    before = all_records(tmp_path)
    with pytest.raises(RunError, match="other units or answers") as caught:
        small_run(tmp_path, **change)
    assert named in str(caught.value)
    assert "--new" in str(caught.value)
    assert all_records(tmp_path).equals(before)


def test_new_sets_the_old_run_aside(tmp_path):
    small_run(tmp_path / "run")
    small_run(tmp_path / "run", scenes=5, new=True)
    assert len(all_records(tmp_path / "run")) == 5
    assert len(all_records(tmp_path / "run.old-1")) == 12


def test_score_options_may_change_on_resume(tmp_path):
    small_run(tmp_path)
    done = small_run(tmp_path, given={"level": 0.5, "reading": {"mean-over": "gt-only"}})
    assert done.progress.answered == 0
    assert done.scored.scorecard.get("miou").interval.level == 0.5
    assert done.scored.scorecard.readings[0].value == "gt-only"
    assert json.loads((tmp_path / "run.json").read_text())["options"]["level"] == 0.5


def test_auto_keeps_the_folders_batch_size(tmp_path):
    small_run(tmp_path, batch_size=5)
    assert small_run(tmp_path, batch_size=None).progress.answered == 0


def test_failures_are_recorded_counted_and_tried_again(tmp_path):
    done = small_run(tmp_path, model=f"{TROUBLED}Raises", args={"scenes": "3+7"}, max_failures=0.5)
    card = done.scored.scorecard
    assert (card.units.planned, card.units.scored, card.units.failed) == (12, 10, 2)
    assert [(note.what, note.count, note.examples) for note in card.left_out] == [
        ("units that failed", 2, ("scene-0003", "scene-0007"))
    ]
    failures = pl.read_parquet(tmp_path / "failures.parquet")
    assert failures["unit"].to_list() == ["scene-0003", "scene-0007"]
    assert all("too much for me" in text for text in failures["traceback"])
    again = small_run(tmp_path, model=f"{TROUBLED}Raises", args={"scenes": "3+7"}, max_failures=0.5)
    assert (again.progress.answered, again.progress.failed) == (0, 2)
    assert len(pl.read_parquet(tmp_path / "failures.parquet")) == 2


def test_too_many_failures_stop_the_run_and_keep_what_is_answered(tmp_path):
    with pytest.raises(RunError, match=r"of 12 units failed, more than 1\.0%"):
        small_run(tmp_path, model=f"{TROUBLED}Raises", args={"scenes": "6"}, batch_size=2)
    assert len(all_records(tmp_path)) >= 6
    assert json.loads((tmp_path / "run.json").read_text())["sessions"][0]["outcome"] == "failed"


def test_stop_stops_at_the_first_failure(tmp_path):
    with pytest.raises(RunError, match="stopped at the first failure: ValueError") as caught:
        small_run(
            tmp_path, model=f"{TROUBLED}Raises", args={"scenes": "2+9"}, on_error="stop", max_failures=1.0, batch_size=1
        )
    assert caught.value.unit == "scene-0002"
    assert len(all_records(tmp_path)) == 2


def test_ctrl_c_keeps_what_is_answered(tmp_path):
    class Interrupts:
        def __init__(self, total, done):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def advance(self, units, failed):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_run(tmp_path, show_progress=Interrupts)
    assert len(all_records(tmp_path)) == 4
    assert json.loads((tmp_path / "run.json").read_text())["sessions"][0]["outcome"] == "stopped"
    assert small_run(tmp_path).progress.before == 4


def test_a_damaged_part_is_named(tmp_path):
    small_run(tmp_path)
    part = next(RunFolder(tmp_path).records_path.glob("part-*"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(RunError, match="cannot be read") as caught:
        small_run(tmp_path)
    assert caught.value.file == str(part)
    assert "delete this file" in caught.value.remedy


def test_answers_that_contradict_each_other_are_reported(tmp_path):
    small_run(tmp_path)
    part = next(RunFolder(tmp_path).records_path.glob("part-*"))
    other = pl.read_parquet(part).head(2).with_columns(ignored=pl.col("ignored") + 1)
    other.write_parquet(part.with_name("part-zzz.parquet"))
    notes = small_run(tmp_path).scored.scorecard.left_out
    assert [(note.what, note.count) for note in notes] == [("second answers", 2)]
    assert "not deterministic" in notes[0].why


def test_a_failed_unit_in_one_shard_does_not_hold_up_the_run(tmp_path):
    model = {"model": f"{TROUBLED}Raises", "args": {"scenes": "1"}, "max_failures": 0.5}
    first = small_run(tmp_path, shard=(1, 2), **model)
    assert (first.scored, first.progress.failed) == (None, 1)
    last = small_run(tmp_path, shard=(2, 2), **model)
    assert last.scored.scorecard.units.failed == 1
    assert last.scored.scorecard.units.scored == 11


def test_when_every_unit_fails_the_error_says_so_and_the_failures_are_kept(tmp_path):
    everything = "+".join(map(str, range(4)))
    with pytest.raises(RunError, match="every unit failed; the first: ValueError: this picture"):
        small_run(tmp_path, scenes=4, model=f"{TROUBLED}Raises", args={"scenes": everything}, max_failures=1.0)
    assert len(pl.read_parquet(tmp_path / "failures.parquet")) == 4


def test_failures_of_another_model_do_not_count(tmp_path):
    with pytest.raises(RunError):
        small_run(tmp_path, model=f"{TROUBLED}Raises", args={"scenes": "2"}, on_error="stop", max_failures=1.0)
    (tmp_path / "run.json").unlink()
    assert small_run(tmp_path).scored.scorecard.units.failed == 0


def test_new_with_a_shard_is_refused(tmp_path):
    small_run(tmp_path, shard=(1, 2))
    with pytest.raises(OptionError, match="other shards"):
        small_run(tmp_path, shard=(2, 2), new=True)
    assert len(all_records(tmp_path)) == 8


def test_a_reading_that_does_not_exist_is_refused_before_and_after(tmp_path):
    with pytest.raises(OptionError, match="closed-miou has no such reading"):
        small_run(tmp_path / "a", given={"reading": {"nosuch": "1"}})
    small_run(tmp_path / "b")
    with pytest.raises(OptionError, match="it has: mean-over"):
        score_run(RunFolder(tmp_path / "b"), {"reading": {"nosuch": "1"}})


def test_a_run_inside_its_data_resumes_and_moved_data_stay_the_same_data(tmp_path):
    write_world(tmp_path / "w", "voc", count=12)
    given = {"data": {"voc": tmp_path / "w"}}
    small_run(tmp_path / "w" / "run", given=given)
    (tmp_path / "w" / ".DS_Store").write_bytes(b"x")
    assert small_run(tmp_path / "w" / "run", given=given).progress.answered == 0
    (tmp_path / "w").rename(tmp_path / "moved")
    moved = {"data": {"voc": tmp_path / "moved"}}
    assert small_run(tmp_path / "moved" / "run", given=moved).progress.answered == 0


def test_a_shard_that_chose_another_batch_size_takes_the_folders(tmp_path, monkeypatch):
    sizes = iter([3, 5])
    monkeypatch.setattr("hardlook.harness.runs.plan.choose_batch_size", lambda here, units: next(sizes))
    small_run(tmp_path, shard=(1, 2), batch_size=None)
    # The second shard looked before run.json was there.
    monkeypatch.setattr("hardlook.harness.runs.folder.RunFolder.exists", lambda self: False)
    small_run(tmp_path, shard=(2, 2), batch_size=None)
    assert RunFolder(tmp_path).read_manifest()["batch_size"] == 3
    assert all_records(tmp_path)["unit"].n_unique() == 12


def test_two_processes_that_disagree_are_found_out(tmp_path):
    program = (
        "import sys\nfrom pathlib import Path\nfrom small_runs import small_run\n"
        "small_run(Path(sys.argv[1]), model='troubled_segmenters:Moody')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    folders = [tmp_path / "a", tmp_path / "b"]
    for mood, folder in enumerate(folders):
        told = {**environment, "MOOD": str(mood)}
        subprocess.run([sys.executable, "-c", program, str(folder)], check=True, env=told)
    for part in (folders[1] / "records").iterdir():
        shutil.copy(part, folders[0] / "records")
    notes = score_run(RunFolder(folders[0])).scorecard.left_out
    assert ("second answers", 12) in [(note.what, note.count) for note in notes]


def test_an_unreadable_session_is_named_and_costs_nothing(tmp_path):
    small_run(tmp_path)
    next((tmp_path / "sessions").iterdir()).write_text("{")
    small_run(tmp_path)
    outcomes = [session["outcome"] for session in RunFolder(tmp_path).read_manifest()["sessions"]]
    assert sorted(outcomes) == ["finished", "unreadable"]
