"""Joined runs: what they hold, that they are read like any other, and which runs are refused."""

from __future__ import annotations

import io
import json
import shutil

import polars as pl
import pytest
from small_runs import all_records, small_run
from split_runs import edit_manifest, scores_without_checksum, split_run

from hardlook.errors import ChangedRun, OptionError, RunError, RunWarning
from hardlook.harness.joined_runs.joining import join_runs, merge_notes
from hardlook.harness.registry import BUILT_IN, STUDIES, find_benchmark
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch
from hardlook.harness.runs.record_store import list_parts, write_part
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.runs.verification import repair_run, verify_run
from hardlook.report.compare.comparison import compare_runs, read_runs
from hardlook.report.explorer.run_data import RunData
from hardlook.report.export.document import write_export
from hardlook.report.leaderboard.board import make_run_entries
from hardlook.report.leaderboard.runs import collect_runs
from hardlook.report.run_report import write_report

ONE_SHOT = {"scenes": 24, "resamples": 0}
SMALL = {
    "metacoco": {"tasks": 3, "resamples": 0},
    "toss": {**ONE_SHOT, "tiers": "3"},
    "bias-support": {**ONE_SHOT, "pairs_a_class": 2},
    "bias-saliency": {**ONE_SHOT, "pairs_a_class": 2},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small run in which units failed."""
    out = tmp_path_factory.mktemp("joining") / "whole"
    model = {"model": "troubled_segmenters:Raises", "args": {"scenes": "3+7"}, "max_failures": 0.5, "batch_size": 3}
    small_run(out, **model)
    return out


@pytest.fixture
def parts(whole, tmp_path):
    return split_run(whole, tmp_path)


@pytest.mark.parametrize("name", [*BUILT_IN, *STUDIES])
def test_joined_runs_of_every_benchmark_are_read_like_any_other(name, tmp_path):
    dial = next((dial for dial in find_benchmark(name).card.dials if dial.moves), None)
    model, args = (dial.model, dial.arguments(0.4)) if dial else (None, {})
    given = SMALL.get(name, {"scenes": 6, "resamples": 0})
    runs = tmp_path / "runs"
    launch(name, out=runs / "whole", model=model, model_args=args, given=given)
    joined = join_runs(split_run(runs / "whole", tmp_path), runs / "joined")

    assert scores_without_checksum(runs / "joined") == scores_without_checksum(runs / "whole")
    assert (all_records(runs / "joined").drop("answers")).equals(all_records(runs / "whole").drop("answers"))
    assert verify_run(RunFolder(runs / "joined")).problems == ()
    assert "the data do not hold this unit" not in write_report(joined, examples=1).read_text()
    compared = compare_runs(read_runs([runs / "whole", runs / "joined"]), swaps=20)
    assert all(not one.value for one in compared.headline if one.value == one.value)
    exported, expected = (json.loads(export(score_run(RunFolder(runs / one)))) for one in ("joined", "whole"))
    assert exported["scores"] == expected["scores"] and exported["records"] == expected["records"]
    entries, _ = make_run_entries(find_benchmark(name), collect_runs(runs).runs[name])
    assert [entry.flags for entry in entries] == [(), ()]


def export(scored):
    stream = io.StringIO()
    write_export(scored, stream)
    return stream.getvalue()


def test_failures_and_where_the_parts_came_from_are_kept(whole, parts, tmp_path):
    joined = join_runs(parts, tmp_path / "joined")
    assert joined.failures["unit"].to_list() == score_run(RunFolder(whole)).failures["unit"].to_list()
    assert joined.scorecard.units == score_run(RunFolder(whole)).scorecard.units
    assert [row["folder"] for row in joined.manifest["joined"]] == [str(part) for part in parts]
    for row, part in zip(joined.manifest["joined"], parts, strict=True):
        stored = RunFolder(part).read_manifest()
        assert row["answers"] == stored["answers"] and row["units"] == stored["units"]
        assert row["model"] == stored["model"] and row["options"] == stored["options"]
    assert [unit.id for unit in joined.list_units()] == [unit.id for unit in joined.list_units()]
    before = (tmp_path / "joined" / "scores.json").read_bytes()
    join_runs(parts, tmp_path / "joined")
    assert (tmp_path / "joined" / "scores.json").read_bytes() == before


def test_a_joined_run_can_be_joined_again(whole, tmp_path):
    parts = split_run(whole, tmp_path, count=4)
    join_runs(parts[:2], tmp_path / "first")
    joined = join_runs([tmp_path / "first", *parts[2:]], tmp_path / "joined")
    assert [row["folder"] for row in joined.manifest["joined"]] == [str(part) for part in parts]
    assert len(joined.manifest["answers"]["parts"]["joined"]) == 4
    assert scores_without_checksum(tmp_path / "joined") == scores_without_checksum(whole)


def test_units_in_common_are_refused_by_both_names(whole, parts, tmp_path):
    shared = min(all_records(parts[0])["unit"])
    with pytest.raises(OptionError) as caught:
        join_runs([parts[0], whole], tmp_path / "joined")
    common = len(all_records(parts[0])) + len(score_run(RunFolder(parts[0])).failures)
    assert caught.value.what == f"{parts[0]} and {whole} have {common} units in common"
    assert caught.value.unit == shared
    assert not (tmp_path / "joined").exists()
    with pytest.raises(OptionError, match="at least two different runs"):
        join_runs([parts[0], parts[0]], tmp_path / "joined")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m["options"].update(resamples=7), "--resamples: 200 in {0}, 7 in {1}"),
        (lambda m: m["options"].update(seed=1), "--seed: 0 in {0}, 1 in {1}"),
        (lambda m: m["model"].update(name="planted-segmenter"), "--model: troubled_segmenters:Raises in {0}, planted-"),
        (lambda m: m["model"]["args"].update(scenes="4"), "--model-arg scenes: 3+7 in {0}, 4 in {1}"),
        (lambda m: m["model"].update(source="other"), "the model's code: "),
        (lambda m: m["answers"]["parts"].update(threads=3), "threads: 1 in {0}, 3 in {1}"),
        (lambda m: m["answers"]["parts"].update({"data planted world": "x"}), "data planted world: "),
        (lambda m: m["benchmark"].update(version="9"), "closed-miou 1 in {0}, closed-miou 9 in {1}"),
    ],
)
def test_different_settings_are_refused_by_both_names(parts, tmp_path, edit, message):
    edit_manifest(parts[1], edit)
    with pytest.raises(OptionError) as caught:
        join_runs(parts, tmp_path / "joined")
    assert message.format(*parts) in caught.value.what
    assert not (tmp_path / "joined").exists()


def test_unfinished_and_mixed_runs_are_refused(parts, tmp_path):
    edit_manifest(parts[0], lambda manifest: manifest.update(units=manifest["units"] + 1))
    with pytest.raises(RunError, match="not finished: 1 of its 7 units"):
        join_runs(parts, tmp_path / "joined")
    [part] = list_parts(RunFolder(parts[1]).records_path)
    write_part(pl.read_parquet(part).with_columns(answers=pl.lit("other")), part.parent)
    with pytest.raises(RunError, match="records here are of another model"):
        join_runs(parts[::-1], tmp_path / "joined")


def test_the_first_of_two_answers_counts_and_is_noted(parts, tmp_path):
    folder = RunFolder(parts[0])
    [part] = list_parts(folder.records_path)
    frame = pl.read_parquet(part)
    counts = next(name for name, kind in frame.schema.items() if kind == pl.List(pl.Int64))
    write_part(frame.head(1).with_columns(pl.col(counts).list.eval(pl.element() + 1)), folder.records_path)
    alone = score_run(folder)
    joined = join_runs(parts, tmp_path / "joined")
    kept = joined.records.filter(pl.col("unit") == frame["unit"][0])
    assert kept.equals(alone.records.filter(pl.col("unit") == frame["unit"][0]))
    assert [note.count for note in joined.scorecard.left_out if note.what == "second answers"] == [1]


def test_another_run_in_the_folder_is_kept_unless_set_aside(whole, parts, tmp_path):
    shutil.copytree(whole, tmp_path / "taken")
    with pytest.raises(ChangedRun, match="the folder holds a run"):
        join_runs(parts, tmp_path / "taken")
    join_runs(parts, tmp_path / "taken", new=True)
    assert (tmp_path / "taken.old-1" / "run.json").is_file()
    with pytest.raises(OptionError, match="--out is one of the runs"):
        join_runs(parts, parts[0])


def test_records_of_a_killed_join_of_other_runs_are_set_aside(whole, parts, tmp_path):
    target = RunFolder(tmp_path / "joined")
    write_part(all_records(whole), target.records_path)
    with pytest.warns(RunWarning, match="records of another run were moved"):
        join_runs(parts, target.path)
    assert scores_without_checksum(target.path) == scores_without_checksum(whole)


def test_a_damaged_joined_run_is_joined_again(whole, parts, tmp_path):
    target = RunFolder(tmp_path / "joined")
    join_runs(parts, target.path)
    part = list_parts(target.records_path)[0]
    part.write_bytes(part.read_bytes()[:-9])
    assert verify_run(target).problems
    assert repair_run(target) is None
    assert verify_run(target).problems == ()
    assert scores_without_checksum(target.path) == scores_without_checksum(whole)
    part = list_parts(target.records_path)[0]
    part.write_bytes(b"")
    shutil.rmtree(parts[1])
    with pytest.raises(RunError, match="part1 is not there any more"):
        repair_run(target)


def test_mixed_code_is_warned_of(parts, tmp_path):
    edit_manifest(parts[1], lambda manifest: manifest["code"].update(fingerprint="other"))
    with pytest.warns(RunWarning, match="different versions of the code of hardlook"):
        join_runs(parts, tmp_path / "joined")


def test_notes_are_added_up_by_kind():
    note = {"what": "pairs", "count": 3, "why": "absent", "examples": ["a", "b", "c"]}
    more = {**note, "count": 4, "examples": ["d", "e", "f"]}
    kept = {**more, "kept": True}
    assert merge_notes([[note, kept], [note, more]]) == [
        {"what": "pairs", "count": 7, "why": "absent", "examples": ["a", "b", "c", "d", "e"]},
        kept,
    ]


def test_the_explorer_finds_the_units_of_all_parts(parts, tmp_path):
    joined = join_runs(parts, tmp_path / "runs" / "joined")
    data = RunData(tmp_path / "runs")
    [listed] = data.index.runs()
    rows = data.table(listed).frame.to_dicts()
    assert [row["unit"] for row in rows] == joined.records["unit"].to_list()
    assert all(data.pictures(listed, row) for row in (rows[0], rows[1], rows[-1]))
