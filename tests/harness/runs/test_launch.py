import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from small_runs import all_records, replace_part, scores_text, small_run

from hardlook.errors import OptionError, RunError, RunWarning
from hardlook.harness import registry
from hardlook.harness.runs import evaluation, record_store, sessions
from hardlook.harness.runs import launch as launching
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.progress import NoProgress
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.runs.sessions import claim_run
from hardlook.harness.scorecard import UnitCounts
from hardlook.models.planted.segmenters import PlantedSegmenter
from hardlook.open_vocabulary.closed_miou import CLOSED_MIOU
from hardlook.world.layouts import write_world

TROUBLED = "troubled_segmenters:"


def test_a_run_leaves_everything_that_is_documented(tmp_path):
    done = small_run(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {".lock", ".running", "run.json", "records", "sessions", "failures.parquet", "scores.json"}
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
    replace_part(part, kept)
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
    with pytest.raises(RunError, match=r"of 12 units failed, more than 1%;"):
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
    class Interrupts(NoProgress):
        def __init__(self, total, done):
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
    with pytest.raises(RunError, match="is damaged") as caught:
        small_run(tmp_path)
    assert caught.value.file == str(part)
    assert f"hardlook verify {tmp_path} --repair" in caught.value.remedy


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


def test_shards_of_different_counts_may_overlap_and_no_unit_counts_twice(tmp_path):
    small_run(tmp_path / "whole", batch_size=1)
    out, other = tmp_path / "run", tmp_path / "other"
    assert small_run(out, batch_size=1, shard=(1, 2)).progress.answered == 6
    # One after the other: what is answered is not answered again.
    after = small_run(out, batch_size=1, shard=(3, 4)).progress
    assert (after.answered, after.before) == (0, 3)
    # At the same time, as if neither had seen the other: both write records of the same units.
    assert small_run(other, batch_size=1, shard=(1, 4)).progress.answered == 3
    for part in RunFolder(other).records_path.iterdir():
        shutil.copy(part, RunFolder(out).records_path)
    last = small_run(out, batch_size=1, shard=(2, 2))
    assert len(all_records(out)) == 12 + 3
    assert last.scored.scorecard.units == UnitCounts(planned=12, scored=12, failed=0)
    assert not last.scored.scorecard.left_out
    assert scores_text(out) == scores_text(tmp_path / "whole")


def test_when_every_unit_fails_the_error_says_so_and_the_failures_are_kept(tmp_path):
    everything = "+".join(map(str, range(4)))
    with pytest.raises(RunError, match="every unit failed; the first: ValueError: this picture"):
        small_run(tmp_path, scenes=4, model=f"{TROUBLED}Raises", args={"scenes": everything}, max_failures=1.0)
    assert len(pl.read_parquet(tmp_path / "failures.parquet")) == 4


def test_failures_of_another_model_do_not_count(tmp_path):
    with pytest.raises(RunError):
        small_run(tmp_path, model=f"{TROUBLED}Raises", args={"scenes": "2"}, on_error="stop", max_failures=1.0)
    (tmp_path / "run.json").unlink()
    with pytest.warns(RunWarning, match="3 records of another run were moved to"):
        assert small_run(tmp_path).scored.scorecard.units.failed == 0
    assert len(list((tmp_path / "damaged").iterdir())) == 1


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
    monkeypatch.setattr(launching, "choose_batch_size", lambda here, units: next(sizes))
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
    (session,) = (tmp_path / "sessions").iterdir()
    session.write_text("{")
    small_run(tmp_path)
    outcomes = [row["outcome"] for row in RunFolder(tmp_path).read_manifest()["sessions"]]
    assert outcomes == ["finished", "finished"], "run.json has what the damaged file lost"
    (tmp_path / "run.json").unlink()
    small_run(tmp_path)
    outcomes = [row["outcome"] for row in RunFolder(tmp_path).read_manifest()["sessions"]]
    assert sorted(outcomes) == ["finished", "finished", "unreadable"]


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_units_that_an_engine_loses_end_the_run_with_their_names(tmp_path, monkeypatch, engine, forked_workers):
    evaluate = launching.evaluate_batches

    def lose_one(*given):
        outcomes = list(evaluate(*given))
        return iter([one for one in outcomes if "scene-0004" not in {row["unit"] for row in one.records}])

    monkeypatch.setattr(launching, "evaluate_batches", lose_one)
    with pytest.raises(
        RunError, match="4 of 12 units were neither answered nor recorded as failed: scene-0004"
    ) as caught:
        small_run(tmp_path, engine=engine)
    assert all(f"scene-000{number}" in caught.value.what for number in (4, 5, 6, 7))
    assert RunFolder(tmp_path).read_manifest()["sessions"][0]["outcome"] == "failed"
    assert not (tmp_path / "scores.json").exists()
    monkeypatch.undo()
    assert small_run(tmp_path).progress.answered == 4


def test_units_that_a_shard_loses_are_not_left_to_other_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "evaluate_batches", lambda *given: iter([]))
    with pytest.raises(RunError, match="8 of 8 units were neither answered"):
        small_run(tmp_path, shard=(1, 2))


def test_a_unit_that_failed_before_and_is_lost_now_is_lost(tmp_path, monkeypatch):
    model = {"model": f"{TROUBLED}Raises", "args": {"scenes": "3"}, "max_failures": 0.5}
    small_run(tmp_path, **model)
    monkeypatch.setattr(launching, "evaluate_batches", lambda *given: iter([]))
    with pytest.raises(RunError, match="1 of 12 units were neither answered nor recorded as failed: scene-0003"):
        small_run(tmp_path, **model)


@pytest.mark.parametrize("content", ["", "{", "\0" * 400, "[]x"])
def test_a_run_goes_on_after_a_crash_that_emptied_run_json(tmp_path, content):
    with pytest.raises(RunError):
        small_run(tmp_path, model=f"{TROUBLED}Raises", args={"scenes": "9"}, on_error="stop", batch_size=3)
    answered = len(all_records(tmp_path))
    (tmp_path / "run.json").write_text(content)
    model = {"model": f"{TROUBLED}Raises", "args": {"scenes": "9"}, "max_failures": 0.5}
    with pytest.warns(RunWarning, match=r"run\.json is not valid JSON .* moved to .*run\.json\.1 and written again"):
        done = small_run(tmp_path, batch_size=None, **model)
    assert done.progress.before == answered > 0, "the batch size is that of the sessions"
    assert done.scored.scorecard.units.scored == 11
    assert (tmp_path / "damaged" / "run.json.1").read_text() == content


def test_a_damaged_run_json_is_not_replaced_by_that_of_another_run(tmp_path):
    small_run(tmp_path)
    (tmp_path / "run.json").write_text("")
    with pytest.raises(RunError, match="the records of this folder are of another model") as caught:
        small_run(tmp_path, args={"stranger": 0.9})
    assert "--new" in caught.value.remedy
    assert (tmp_path / "run.json").read_text() == ""


def write_model(folder, body):
    (folder / "mended_model.py").write_text(
        "from hardlook.models.planted.segmenters import PlantedSegmenter\n\n\n"
        f"class Mended(PlantedSegmenter):\n    def segment(self, images):\n{body}"
    )
    sys.modules.pop("mended_model", None)


RAISES = "        raise ValueError('a bug')\n"
RAISES_LATER = (
    "        self.calls = getattr(self, 'calls', 0) + 1\n        if self.calls > 1:\n    "
    f"{RAISES}        return super().segment(images)\n"
)
WORKS = "        return super().segment(images)\n"


def test_a_mended_model_goes_on_where_no_unit_was_answered(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write_model(tmp_path, RAISES)
    with pytest.raises(RunError, match="units failed") as caught:
        small_run(tmp_path / "run", model="mended_model:Mended")
    assert "also with changed code of the model" in caught.value.remedy
    write_model(tmp_path, WORKS)
    done = small_run(tmp_path / "run", model="mended_model:Mended")
    assert (done.scored.scorecard.units.scored, done.scored.scorecard.units.failed) == (12, 0)
    outcomes = [row["outcome"] for row in RunFolder(tmp_path / "run").read_manifest()["sessions"]]
    assert sorted(outcomes) == ["failed", "finished"]


def test_a_mended_model_after_answers_says_what_to_type(tmp_path, monkeypatch, hardlook):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path, RAISES_LATER)
    words = ["run", "closed-miou", "--model", "mended_model:Mended", "--scenes", "12", "--resamples", "20", "-q"]
    failed = hardlook(*words, "--batch-size", "4", "--out", "run")
    assert failed.code == 1 and "a changed model starts again with --new" in failed.err
    write_model(tmp_path, WORKS)
    refused = hardlook(*words, "--out", "run")
    assert refused.code == 1 and "model source" in refused.err
    typed = refused.err.split("type: ")[1].strip()
    assert typed == "hardlook run closed-miou --model mended_model:Mended --scenes 12 --resamples 20 --out run --new"
    assert hardlook(*typed.split()[1:], "-q").code == 0
    assert len(all_records(tmp_path / "run")) == 12
    assert (tmp_path / "run.old-1" / "run.json").is_file()


def test_a_changed_model_does_not_take_a_folder_from_a_living_process(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write_model(tmp_path, RAISES)
    shards = {"model": "mended_model:Mended", "batch_size": 4}
    with pytest.raises(RunError, match="units failed"):
        small_run(tmp_path / "run", shard=(1, 2), **shards)
    folder = RunFolder(tmp_path / "run")
    old = folder.read_manifest()["answers"]["fingerprint"]
    write_model(tmp_path, WORKS)
    with claim_run(folder, (1, 2), old), pytest.raises(RunError, match="model source"):
        small_run(tmp_path / "run", shard=(2, 2), **shards)
    assert small_run(tmp_path / "run", shard=(2, 2), **shards).progress.answered == 4
    assert small_run(tmp_path / "run", shard=(1, 2), **shards).scored.scorecard.units.scored == 12


def test_records_of_other_code_are_warned_of(tmp_path, monkeypatch):
    small_run(tmp_path, shard=(1, 2))
    assert all(row["code"] and row["model_code"] for row in RunFolder(tmp_path).read_manifest()["sessions"])
    monkeypatch.setattr(sessions, "code_fingerprint", lambda: "0123456789abcdef")
    with pytest.warns(RunWarning, match=r"different versions of the code of hardlook \(.*01234567.*\); --new"):
        small_run(tmp_path, shard=(2, 2))


def test_a_model_with_a_fingerprint_of_its_own_is_warned_of_when_its_code_changes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    own = "\n    def fingerprint(self):\n        return 'mine'\n"
    write_model(tmp_path, WORKS + own)
    small_run(tmp_path / "run", shard=(1, 2), model="mended_model:Mended")
    write_model(tmp_path, "        images = list(images)\n" + WORKS + own)
    with pytest.warns(RunWarning, match="different versions of the code of the model"):
        small_run(tmp_path / "run", shard=(2, 2), model="mended_model:Mended")


def test_another_version_of_the_benchmark_is_refused(tmp_path, monkeypatch):
    small_run(tmp_path, shard=(1, 2))
    found = launching.find_benchmark("closed-miou")
    other = replace(found, card=replace(found.card, version="other"))
    for module in (launching, evaluation):
        monkeypatch.setattr(module, "find_benchmark", lambda name: other)
    with pytest.raises(RunError, match="benchmark: closed-miou 1 in the folder, closed-miou other now"):
        small_run(tmp_path, shard=(2, 2))


def test_a_second_process_says_that_a_run_is_under_way(tmp_path):
    small_run(tmp_path, shard=(1, 2))
    folder = RunFolder(tmp_path)
    before = all_records(tmp_path)
    with claim_run(folder), pytest.raises(RunError, match=f"a run is under way .* process {os.getpid()} on ") as caught:
        small_run(tmp_path)
    assert "end that process" in caught.value.remedy and str(tmp_path / ".running") in caught.value.remedy
    for shard in ((1, 2), None):
        with claim_run(folder, (1, 2)), pytest.raises(RunError, match="a run is under way"):
            small_run(tmp_path, shard=shard)
    with claim_run(folder, (1, 2)), pytest.raises(RunError, match="a run is under way"):
        small_run(tmp_path, new=True)
    assert all_records(tmp_path).equals(before)
    with claim_run(folder, (1, 2)):
        assert small_run(tmp_path, shard=(2, 2)).progress.answered == 4


def test_without_locks_two_processes_may_work_on_one_folder(tmp_path, monkeypatch):
    import fcntl

    def no_locks(*given):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / "run").mkdir()
    with claim_run(RunFolder(tmp_path / "run")):
        assert small_run(tmp_path / "run").progress.answered == 12


def test_a_full_disk_names_the_file_and_the_space_and_the_run_resumes(tmp_path, monkeypatch):
    write, parts = record_store.write_atomically, []

    def fill_up(path, content):
        if path.parent.name == "records" and (parts.append(path) or len(parts) > 1):
            raise OSError(errno.ENOSPC, "No space left on device: this file needs 12 MB", str(path))
        write(path, content)

    monkeypatch.setattr(record_store, "write_atomically", fill_up)
    monkeypatch.setattr(record_store, "FLUSH_RECORDS", 4)
    with pytest.raises(OSError, match="this file needs 12 MB"):
        small_run(tmp_path)
    assert RunFolder(tmp_path).read_manifest()["sessions"][0]["outcome"] == "failed"
    monkeypatch.undo()
    assert small_run(tmp_path).progress.before == 4


@pytest.mark.parametrize("given", ["model", "benchmark"])
def test_a_changed_run_of_an_object_says_how_to_call_it_again(tmp_path, monkeypatch, given):
    monkeypatch.setattr(registry, "_ADDED", {})
    model = PlantedSegmenter() if given == "model" else "planted-segmenter"
    benchmark = replace(CLOSED_MIOU, card=replace(CLOSED_MIOU.card, name="own-miou")) if given == "benchmark" else None

    def run(scenes):
        options = {"scenes": scenes, "resamples": 0}
        launching.launch(benchmark or "closed-miou", out=tmp_path / "run", model=model, given=options)

    run(2)
    with pytest.raises(RunError, match="other units or answers") as caught:
        run(3)
    assert "evaluate every unit again, call hl.run with new=True" in str(caught.value)
    assert "type:" not in str(caught.value)


@pytest.mark.parametrize(("lost", "more"), [(10, ""), (12, " and 2 more")])
def test_of_many_lost_units_ten_are_named(tmp_path, monkeypatch, lost, more):
    evaluate = launching.evaluate_batches
    names = [f"scene-{number:04}" for number in range(12 - lost, 12)]

    def lose(*given):
        for one in evaluate(*given):
            yield replace(one, records=[row for row in one.records if row["unit"] not in names])

    monkeypatch.setattr(launching, "evaluate_batches", lose)
    with pytest.raises(RunError, match=f"{lost} of 12 units were neither answered nor recorded as failed") as caught:
        small_run(tmp_path)
    assert caught.value.what.endswith(f"failed: {', '.join(names[:10])}{more}")
    assert caught.value.unit == names[0]


@pytest.mark.parametrize(
    ("failed", "share", "stops"), [(1, 0.1, False), (2, 0.1, True), (1, 0.0, True), (10, 1.0, False), (1, 0.099, True)]
)
def test_a_run_stops_where_more_units_fail_than_the_share_allows(failed, share, stops):
    session, last = sessions.Session("inline", failed=failed), record_store.Failure("u", "evaluate", "broken", "")
    settings = launching.RunSettings(max_failures=share)
    if not stops:
        launching._stop_if_too_many(settings, session, 10, 0, last)
        return
    with pytest.raises(
        RunError, match=f"{failed} of 10 units failed, more than {100 * share:g}%; the last: broken"
    ) as caught:
        launching._stop_if_too_many(settings, session, 10, 0, last)
    assert caught.value.unit == "u" and "--max-failures SHARE" in caught.value.remedy


@pytest.mark.parametrize(("before", "answered", "again"), [(0, 0, False), (1, 0, True), (0, 1, True)])
def test_a_changed_model_starts_again_where_some_units_are_answered(before, answered, again):
    session, last = sessions.Session("inline", answered=answered), record_store.Failure("u", "evaluate", "broken", "")
    with pytest.raises(RunError, match="stopped at the first failure: broken") as caught:
        launching._stop_if_too_many(launching.RunSettings(on_error="stop"), session, 10, before, last)
    assert ("starts again with --new" in caught.value.remedy) == again
    assert ("also with changed code" in caught.value.remedy) == (not again)


@pytest.mark.parametrize(
    ("given", "pred", "data", "chosen"),
    [
        ("mine", None, False, "mine"),
        (None, None, False, "planted-segmenter"),
        (None, Path("pred"), False, ""),
        ("mine", None, True, "mine"),
    ],
)
def test_the_model_is_the_given_one_or_the_default_of_the_planted_world(given, pred, data, chosen):
    options = CLOSED_MIOU.options.model_construct(pred=pred, data={"voc": Path("w")} if data else {})
    assert launching.choose_model(CLOSED_MIOU.card, options, given) == chosen


def test_a_model_beside_predictions_or_none_beside_data_is_refused():
    options = CLOSED_MIOU.options.model_construct
    with pytest.raises(OptionError, match="--model and --pred are both given"):
        launching.choose_model(CLOSED_MIOU.card, options(pred=Path("p"), data={}), "mine")
    with pytest.raises(OptionError, match="which model is to run on w"):
        launching.choose_model(CLOSED_MIOU.card, options(pred=None, data={"voc": Path("w")}), None)
    with pytest.raises(OptionError, match="closed-miou needs a model"):
        launching.choose_model(replace(CLOSED_MIOU.card, default_model=""), options(pred=None, data={}), None)
    launching.choose_model(CLOSED_MIOU.card, options(pred=Path("p"), data={"voc": Path("w")}), None)


def test_the_batch_size_of_a_damaged_run_is_that_of_its_sessions(tmp_path):
    folder = RunFolder(tmp_path)
    folder.manifest_path.write_text("{")
    assert launching._read_batch_size(folder) is None
    sessions.Session("inline", id="a").save(folder)
    sessions.Session("inline", id="b", batch_size=7).save(folder)
    sessions.Session("inline", id="c", batch_size=9).save(folder)
    assert launching._read_batch_size(folder) == 7


def test_an_object_as_a_model_takes_no_arguments():
    model, options = PlantedSegmenter(), CLOSED_MIOU.options(scenes=2)
    job = launching.make_job("closed-miou", CLOSED_MIOU, options, model, {}, 2)
    assert (job.benchmark, job.threads, job.given_model.value, job.given_benchmark) == ("closed-miou", 2, model, None)
    with pytest.raises(OptionError, match="is an object and takes no arguments: a, b"):
        launching.make_job("closed-miou", CLOSED_MIOU, options, model, {"a": 1, "b": 2}, 1)
    named = launching.make_job(CLOSED_MIOU, CLOSED_MIOU, options, "planted-segmenter", {"stranger": 0.5}, 1)
    assert named.given_model is None and named.given_benchmark.value is CLOSED_MIOU
    assert (named.benchmark, named.model, named.model_args) == ("closed-miou", "planted-segmenter", {"stranger": 0.5})
