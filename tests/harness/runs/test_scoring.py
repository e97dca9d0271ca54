import shutil
from dataclasses import replace

import polars as pl
import pytest
from small_runs import small_run

from hardlook.errors import OptionError, RunError
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs import scoring
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.record_store import FAILURE_COLUMNS, list_parts, write_part
from hardlook.harness.runs.scoring import (
    check_readings,
    read_run_records,
    save_score_options,
    score_run,
)
from hardlook.harness.scorecard import Score, Scorecard, UnitCounts


def test_a_reading_with_an_option_of_its_own_is_refused_with_that_option():
    benchmark = find_benchmark("open-ap")
    for given in ({"measure": "path"}, {"measure": "path", "nosuch": "1"}):
        with pytest.raises(OptionError, match="--reading measure: it changes more than the scores") as caught:
            check_readings(benchmark, benchmark.options(reading=given))
        assert caught.value.remedy == "`hardlook run open-ap` sets it by --measure"


def test_of_several_unknown_readings_the_first_by_name_is_refused_with_those_there_are():
    benchmark = find_benchmark("open-ap")
    check_readings(benchmark, benchmark.options(reading={"unmatched": "released"}))
    with pytest.raises(OptionError, match="--reading fast: open-ap has no such reading") as caught:
        check_readings(benchmark, benchmark.options(reading={"slow": "1", "fast": "1", "unmatched": "released"}))
    assert caught.value.remedy == "it has: protocol, unmatched"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Twelve units of a finished run of closed mIoU."""
    out = tmp_path_factory.mktemp("scored")
    small_run(out)
    return out


@pytest.fixture
def folder(run, tmp_path):
    return RunFolder(shutil.copytree(run, tmp_path / "run"))


def notes_of(scored):
    return {one.what: (one.count, one.examples) for one in scored.scorecard.left_out}


def test_a_whole_run_leaves_nothing_out(folder):
    scored = score_run(folder)
    assert notes_of(scored) == {} and scored.scorecard.units == UnitCounts(12, 12, 0)
    assert scored.scorecard.model == "planted-segmenter" and len(scored.list_units()) == 12
    # Records are sorted by unit, without pictures; those of single units have them.
    assert scored.records["unit"].is_sorted() and "prediction" not in scored.records.columns
    chosen = scored.records["unit"].to_list()[3:5]
    assert list(scored.whole_records(chosen)) == chosen and "prediction" in scored.whole_records(chosen)[chosen[0]]


def drop_units(folder, count):
    """Take the last units out of the run's records; their names."""
    parts = list_parts(folder.records_path)
    frame = pl.concat([pl.read_parquet(part) for part in parts]).sort("unit")
    for part in parts:
        part.unlink()
    write_part(frame.head(len(frame) - count), folder.records_path)
    return frame["unit"].to_list()[len(frame) - count :]


def fail_units(folder, units):
    answers = folder.read_manifest()["answers"]["fingerprint"]
    rows = [(unit, "evaluate", f"no {unit}", "", f"2026-01-0{day}", answers) for day, unit in enumerate(units, 1)]
    write_part(pl.DataFrame(rows, list(FAILURE_COLUMNS), orient="row"), folder.failure_parts_path)


def test_units_that_failed_or_are_not_answered_are_counted(folder):
    missing = drop_units(folder, 8)
    assert notes_of(score_run(folder)) == {"units not answered yet": (8, ())}
    fail_units(folder, missing[:7])
    scored = score_run(folder)
    assert notes_of(scored) == {"units that failed": (7, tuple(missing[:5])), "units not answered yet": (1, ())}
    assert scored.scorecard.units == UnitCounts(12, 4, 7)
    fail_units(folder, missing)
    assert notes_of(score_run(folder)) == {"units that failed": (8, tuple(missing[:5]))}


def test_second_answers_are_counted_where_they_differ(folder):
    frame = pl.concat([pl.read_parquet(part) for part in list_parts(folder.records_path)]).sort("unit")
    before = score_run(folder).scorecard
    write_part(frame.head(3), folder.records_path)
    assert score_run(folder).scorecard == before
    other = frame.head(7).with_columns(context=pl.lit("elsewhere"))
    write_part(other, folder.records_path)
    assert notes_of(score_run(folder)) == {"second answers": (7, tuple(frame["unit"].to_list()[:5]))}


def test_a_run_of_failures_or_of_nothing_has_no_scores(folder):
    missing = drop_units(folder, 12)
    with pytest.raises(RunError, match="the run has no records yet"):
        score_run(folder)
    fail_units(folder, missing)
    with pytest.raises(RunError, match=f"every unit failed; the first: no {missing[0]}") as caught:
        score_run(folder)
    assert caught.value.unit == missing[0]


def test_records_of_another_run_are_no_part_of_this_one(folder):
    frame = pl.concat([pl.read_parquet(part) for part in list_parts(folder.records_path)])
    write_part(frame.head(5).with_columns(answers=pl.lit("other")), folder.records_path)
    with pytest.raises(RunError, match="5 records here were made with another version of the benchmark"):
        score_run(folder)


def test_options_that_change_scores_alone_can_be_changed(folder):
    scored = score_run(folder, {"level": 0.5, "reading": {"mean-over": "gt-only"}})
    assert (scored.options.level, scored.options.reading) == (0.5, {"mean-over": "gt-only"})
    assert {one.interval.level for one in scored.scorecard.scores if one.interval} == {0.5}
    with pytest.raises(OptionError, match="nosuch: closed-miou has no such option"):
        score_run(folder, {"nosuch": 1, "level": 0.5})
    with pytest.raises(OptionError, match="scenes: this changes the units or their records, not only the scores"):
        score_run(folder, {"scenes": 3, "level": 0.5})
    save_score_options(folder, scored.options)
    assert folder.read_manifest()["options"]["level"] == 0.5
    assert score_run(folder).options.reading == {"mean-over": "gt-only"}


def test_a_run_of_another_benchmark_is_refused_by_its_name(folder):
    manifest, records = read_run_records(folder.path, "closed-miou")
    assert manifest["units"] == len(records) == 12
    with pytest.raises(RunError, match="this is a run of closed-miou") as caught:
        read_run_records(folder.path, "toss")
    assert caught.value.remedy == "give the folder of a `hardlook run toss`"


@pytest.mark.parametrize("words", ["comparable with the paper", "Comparable where", "not in the paper", ""])
def test_a_score_is_comparable_only_with_all_its_units(folder, monkeypatch, words):
    def score(records, options):
        return Scorecard("closed-miou", "1", "", (Score("miou", 0.5, len(records), comparable=words),))

    benchmark = replace(find_benchmark("closed-miou"), score=score)
    monkeypatch.setattr(scoring, "find_benchmark", lambda name: benchmark)
    assert [one.comparable for one in score_run(folder).scorecard.scores] == [words]
    drop_units(folder, 3)
    claimed = words.lower().startswith("comparable")
    expected = "not comparable: 3 units have no answer" if claimed else words
    assert [one.comparable for one in score_run(folder).scorecard.scores] == [expected]
