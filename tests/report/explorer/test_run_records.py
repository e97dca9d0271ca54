import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from small_runs import replace_part

from hardlook.errors import RunError
from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.registry import BUILT_IN, find_benchmark
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.scoring import score_run
from hardlook.report.explorer import run_records
from hardlook.report.explorer.run_records import (
    PART,
    ROW,
    build_record_frame,
    load_record_frame,
    read_run_state,
    read_whole_record,
)

SMALL = {"metacoco": {"tasks": 3, "scenes": 480}, "rclicks": {"scenes": 3}, "toss": {"tiers": (3,)}}


def state_of(root, name="strange"):
    run = score_run(RunFolder(root / "seg" / name))
    return run, read_run_state(run.folder, run.benchmark, run.options, run.manifest["answers"]["fingerprint"], root)


def test_the_table_is_the_records_and_their_qualities(made):
    run, state = state_of(made)
    table = build_record_frame(state)
    scalar = ["unit", "context", "truth", "labels", "ignored", "names"]
    assert_frame_equal(table.select(scalar), run.records.select(scalar))
    assert_frame_equal(table.select("unit", "image-miou"), run.benchmark.qualities(run.records, run.options))
    assert not [name for name, kind in table.schema.items() if kind.is_nested() or kind == pl.Binary]


def test_every_whole_record_is_found_in_its_row(made):
    run, state = state_of(made)
    whole = run.whole_records(run.records["unit"].to_list())
    for row in build_record_frame(state).iter_rows(named=True):
        assert read_whole_record(state, row) == whole[row["unit"]]


def test_of_a_unit_answered_twice_the_same_answer_counts_as_in_scores(copied):
    folder = copied / "seg" / "strange" / "records"
    (part,) = folder.glob("*.parquet")
    frame = pl.read_parquet(part)
    other = frame[3:6].with_columns(ignored=pl.lit(-7, pl.Int64))
    stranger = frame[:2].with_columns(unit=pl.col("unit") + "x", answers=pl.lit("of another run"))
    other.write_parquet(folder / "part-0.parquet")
    run, _ = state_of(copied)
    stranger.write_parquet(folder / "part-1.parquet")
    answers = run.manifest["answers"]["fingerprint"]
    state = read_run_state(run.folder, run.benchmark, run.options, answers, copied)
    table = build_record_frame(state)
    assert table["unit"].to_list() == run.records["unit"].to_list()
    assert table["ignored"].to_list() == run.records["ignored"].to_list()
    assert (table["ignored"] == -7).sum() == 3
    assert all(read_whole_record(state, row)["ignored"] == row["ignored"] for row in table.iter_rows(named=True))


def test_the_table_is_made_once_and_anew_when_records_change(copied, monkeypatch):
    _, state = state_of(copied)
    first = load_record_frame(state)
    with monkeypatch.context() as patch:
        patch.setattr(run_records, "build_record_frame", lambda state: pytest.fail("it was made again"))
        assert_frame_equal(load_record_frame(state), first)
    (part,) = state.paths
    pl.read_parquet(part)[:4].write_parquet(part)
    _, changed = state_of(copied)
    assert changed.fingerprint != state.fingerprint
    assert len(load_record_frame(changed)) == 4


def test_the_table_of_very_many_units_stays_in_its_file(copied, monkeypatch):
    _, state = state_of(copied)
    expected = build_record_frame(state)
    monkeypatch.setattr(run_records, "MOST_IN_MEMORY", 3)
    monkeypatch.setattr(run_records, "build_record_frame", lambda state: pytest.fail("it was read into memory"))
    many = replace(state, units=len(expected))
    stored = load_record_frame(many)
    assert isinstance(stored, pl.LazyFrame)
    assert_frame_equal(stored.collect(), expected)
    monkeypatch.setattr(run_records, "store_frames", lambda *_: pytest.fail("it was made again"))
    assert_frame_equal(load_record_frame(many).collect(), expected)
    # A cache that cannot be written is read.
    monkeypatch.setattr(Path, "touch", lambda path: (_ for _ in ()).throw(PermissionError(path)))
    assert_frame_equal(load_record_frame(many).collect(), expected)


@pytest.fixture
def many(copied, tmp_path, monkeypatch):
    """The state of a run that counts as one of very many units, with a cache of its own."""
    monkeypatch.setattr(run_records, "MOST_IN_MEMORY", 3)
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    return replace(state_of(copied)[1], units=8)


def test_parts_that_come_while_a_stored_table_is_made_are_not_in_it(many):
    (part,) = many.paths
    pl.read_parquet(part)[:2].with_columns(unit=pl.col("unit") + "x").write_parquet(part.with_name("part-0.parquet"))
    rows = load_record_frame(many).collect().to_dicts()
    assert len(rows) == len(pl.read_parquet(part))
    assert all(read_whole_record(many, row)["unit"] == row["unit"] for row in rows)


def test_a_stored_table_that_was_damaged_is_made_again(many):
    expected = load_record_frame(many).collect()
    run_records.get_cached_path(many.fingerprint).write_bytes(b"half a file")
    assert_frame_equal(load_record_frame(many).collect(), expected)


def test_another_server_may_remove_old_tables_meanwhile(many, monkeypatch):
    folder = run_records.get_cache_folder()
    folder.mkdir(parents=True)
    (folder / "removed.parquet").symlink_to("gone")
    monkeypatch.setattr(run_records, "build_record_frame", lambda state: pytest.fail("it was read into memory"))
    assert isinstance(load_record_frame(many), pl.LazyFrame)


def test_qualities_that_fail_are_an_error_of_the_run(many):
    def fail(records, options):
        raise ValueError("no such column")

    broken = replace(many, benchmark=replace(many.benchmark, qualities=fail))
    with pytest.raises(RunError, match="no such column"):
        load_record_frame(broken)


def test_without_a_cache_the_table_of_very_many_units_is_in_memory(copied, tmp_path, monkeypatch):
    _, state = state_of(copied)
    monkeypatch.setattr(run_records, "MOST_IN_MEMORY", 3)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "file"))
    assert isinstance(load_record_frame(replace(state, units=8)), pl.DataFrame)


def test_a_broken_or_locked_cache_costs_nothing_but_time(made, tmp_path, monkeypatch):
    _, state = state_of(made)
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    expected = load_record_frame(state)
    (kept,) = (tmp_path / "explorer").glob("*.parquet")
    kept.write_bytes(b"half a file")
    assert_frame_equal(load_record_frame(state), expected)
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "a file"))
    assert_frame_equal(load_record_frame(state), expected)


def test_old_tables_are_dropped(made, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(run_records, "MAX_CACHED_TABLES", 1)
    for name in ("strange", "ragged"):
        load_record_frame(state_of(made, name)[1])
    assert len(list((tmp_path / "explorer").glob("*.parquet"))) == 1


def test_nothing_is_written_into_the_run(copied):
    before = sorted(path.relative_to(copied) for path in copied.rglob("*"))
    load_record_frame(state_of(copied)[1])
    assert sorted(path.relative_to(copied) for path in copied.rglob("*")) == before


def test_a_part_that_leads_elsewhere_is_refused(copied, tmp_path):
    folder = copied / "seg" / "strange" / "records"
    (part,) = folder.glob("*.parquet")
    moved = shutil.move(part, tmp_path / "elsewhere.parquet")
    part.symlink_to(moved)
    with pytest.raises(RunError, match="outside the served folder"):
        state_of(copied)


def test_a_damaged_part_is_named_without_its_folder(copied):
    folder = copied / "seg" / "strange" / "records"
    (part,) = folder.glob("*.parquet")
    replace_part(part, pl.read_parquet(part))
    _, state = state_of(copied)
    (part,) = state.paths
    row = build_record_frame(state).row(2, named=True)
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 4
    part.write_bytes(content)
    for read in (lambda: build_record_frame(state), lambda: read_whole_record(state, row)):
        with pytest.raises(RunError, match="is damaged") as caught:
            read()
        assert caught.value.file == part.name and "hardlook verify" in caught.value.remedy


def test_a_record_that_was_replaced_is_not_mistaken_for_another(copied):
    _, state = state_of(copied)
    row = build_record_frame(state).row(2, named=True)
    (part,) = state.paths
    pl.read_parquet(part).reverse().write_parquet(part)
    with pytest.raises(RunError, match="have changed"):
        read_whole_record(state, row)
    part.unlink()
    with pytest.raises(RunError, match="cannot be read any more"):
        read_whole_record(state, row)


def test_a_run_without_records_is_an_empty_table(copied):
    (part,) = (copied / "seg" / "strange" / "records").glob("*.parquet")
    run, _ = state_of(copied)
    part.unlink()
    state = read_run_state(run.folder, run.benchmark, run.options, "x", copied)
    table = load_record_frame(state)
    assert len(table) == 0
    assert {PART, ROW, "image-miou"} <= set(table.columns)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_quality_is_of_its_unit_alone(name):
    """The table is gathered some records at a time, so a quality must not depend on the other records."""
    benchmark = find_benchmark(name)
    if benchmark.qualities is None:
        pytest.skip(f"{name} does not judge single units")
    options = {"scenes": 24} if "scenes" in benchmark.options.model_fields else {}
    fields = benchmark.options.model_fields
    given = {key: value for key, value in {**options, **SMALL.get(name, {})}.items() if key in fields}
    rehearsal = InMemoryRun(name, given)
    records = rehearsal.records(benchmark.card.default_model)
    whole = benchmark.qualities(records, rehearsal.options)
    assert whole.columns == ["unit", *(quality.name for quality in benchmark.card.qualities)]
    step = max(1, len(records) // 3)
    parts = [benchmark.qualities(records[at : at + step], rehearsal.options) for at in range(0, len(records), step)]
    assert_frame_equal(pl.concat(parts), whole)


def test_the_name_of_a_table_follows_score_options(copied):
    _, state = state_of(copied)
    path = copied / "seg" / "strange" / "run.json"
    manifest = parse_checked_json(path.read_text())
    manifest["options"]["reading"] = {"mean-over": "gt-only"}
    path.write_text(json.dumps(manifest))
    assert state_of(copied)[1].fingerprint != state.fingerprint
