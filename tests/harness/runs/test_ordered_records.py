"""Records in the order of their units, a bounded number at a time: the same rows as in one table."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.errors import DamagedFile
from hardlook.harness.records import Column, RecordSchema
from hardlook.harness.runs import ordered_records
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.ordered_records import OrderedRecords
from hardlook.harness.runs.record_store import (
    find_contradicting_units,
    list_parts,
    read_all_records,
    read_records,
    write_part,
)

SCHEMA = RecordSchema((Column("place", "text", "where", "slice"), Column("hits", "int", "how many")))
COLUMNS = SCHEMA.light


def write_parts(path, parts, answers="ours"):
    """A run folder with these parts, each a list of (unit, hits)."""
    folder = RunFolder(path)
    folder.records_path.mkdir(parents=True, exist_ok=True)
    for rows in parts:
        frame = SCHEMA.frame([{"unit": unit, "place": "sea", "hits": hits} for unit, hits in rows])
        write_part(frame.with_columns(answers=pl.lit(answers)), folder.records_path)
    return folder


def join(ordered, columns=COLUMNS):
    chunks = list(ordered.iterate(columns))
    assert all(len(chunk) for chunk in chunks)
    return pl.concat(chunks), chunks


def is_distributed(ordered):
    return ordered._overlap()


units = st.text("abé9", min_size=1, max_size=4)


@given(
    st.lists(st.lists(st.tuples(units, st.integers(0, 3)), min_size=1, max_size=9), min_size=1, max_size=7),
    st.integers(1, 12),
)
@settings(max_examples=30, deadline=None)
def test_any_parts_give_the_rows_of_one_table(tmp_path_factory, parts, rows):
    folder = write_parts(tmp_path_factory.mktemp("run"), parts)
    ordered = OrderedRecords(folder, SCHEMA, "ours", rows=rows)
    contradicting = []
    found = pl.concat(ordered.iterate(COLUMNS, contradicting))
    assert found.equals(read_records(folder, SCHEMA, "ours", COLUMNS))
    every, _ = read_all_records(folder, SCHEMA, "ours", COLUMNS)
    assert ordered.stored == len(every)
    assert sorted(contradicting) == find_contradicting_units(every)


@pytest.mark.parametrize(
    ("order", "distributed"),
    [("in order", False), ("two processes", False), ("shards", False), ("drawn", True)],
)
def test_memory_is_bounded_whatever_the_order_of_the_units(tmp_path, order, distributed):
    names = np.array([f"unit-{number:05}" for number in range(6000)])
    batches = names.reshape(-1, 20)
    if order == "two processes":  # Batches of two workers, each at its own speed.
        batches = batches[np.argsort(np.arange(300) + 15 * (np.arange(300) % 2), kind="stable")]
    if order == "drawn":
        batches = np.random.default_rng(0).permutation(names).reshape(-1, 20)
    if order == "shards":  # One whole shard after the other: every third batch.
        batches = np.concatenate([batches[start::3] for start in range(3)])
    parts = [[(str(unit), 1) for unit in part.ravel()] for part in np.split(batches, 60)]
    folder = write_parts(tmp_path, parts)
    ordered = OrderedRecords(folder, SCHEMA, "ours", rows=500)
    assert is_distributed(ordered) == distributed
    found, chunks = join(ordered)
    assert found["unit"].to_list() == names.tolist()
    assert max(map(len, chunks)) <= 1500 and len(chunks) > 4


def test_parts_of_one_record_do_not_make_other_ranges_larger(tmp_path):
    few = [[(f"a-{number:04}", 1)] for number in range(400)]
    drawn = np.random.default_rng(0).permutation(4000).reshape(4, 1000)
    many = [[(f"b-{number:04}", 1) for number in part] for part in drawn]
    ordered = OrderedRecords(write_parts(tmp_path, [*few, *many]), SCHEMA, "ours", rows=250)
    assert is_distributed(ordered)
    assert max(map(len, join(ordered)[1])) < 500


def test_only_parts_with_wanted_units_are_read(tmp_path, monkeypatch):
    parts = [[(f"unit-{number:03}", number) for number in range(start, start + 10)] for start in range(0, 100, 10)]
    ordered = OrderedRecords(write_parts(tmp_path, [*parts, [("unit-031", 99)]]), SCHEMA, "ours", rows=30)
    read, original = [], ordered_records.read_own_part

    def note(part, *rest):
        read.append(part)
        return original(part, *rest)

    monkeypatch.setattr(ordered_records, "read_own_part", note)
    found = ordered.find(["unit", "hits"], {"unit-031", "unit-077", "unknown"})
    assert found["unit"].to_list() == ["unit-031", "unit-077"] and found["hits"][1] == 77
    # Of the unit with two records, that of the first part by name, as everywhere.
    assert found["hits"][0] == read_records(ordered.folder, SCHEMA, "ours", COLUMNS, ["unit-031"])["hits"][0]
    assert len(read) == 3
    assert ordered.find(COLUMNS, []).is_empty()


def test_records_of_others_are_counted_and_left_out(tmp_path):
    write_parts(tmp_path, [[("a", 1), ("b", 2)]])
    folder = write_parts(tmp_path, [[("c", 3)]], answers="theirs")
    ordered = OrderedRecords(folder, SCHEMA, "ours")
    assert list(ordered.others.values()) == [1] and ordered.stored == 2
    assert join(ordered)[0]["unit"].to_list() == ["a", "b"]


def test_a_run_without_records_has_no_chunks(tmp_path):
    ordered = OrderedRecords(RunFolder(tmp_path), SCHEMA, "ours")
    assert ordered.stored == 0 and list(ordered.iterate(COLUMNS)) == []


def test_parts_may_be_added_while_others_are_read(tmp_path, monkeypatch):
    write_parts(tmp_path, [[("a", 1)], [("b", 2)]])
    original = ordered_records.list_parts

    def add_after(path):
        parts = original(path)
        write_parts(tmp_path, [[("c", 3)]])
        return parts

    monkeypatch.setattr(ordered_records, "list_parts", add_after)
    assert join(OrderedRecords(RunFolder(tmp_path), SCHEMA, "ours"))[0]["unit"].to_list() == ["a", "b"]


def test_damage_is_named(tmp_path):
    folder = write_parts(tmp_path, [[("a", 1)], [("b", 2)]])
    ordered = OrderedRecords(folder, SCHEMA, "ours")
    part = list_parts(folder.records_path)[1]
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(DamagedFile, match="does not have the hash") as caught:
        join(ordered)
    assert str(caught.value.file) == str(part)


def test_second_records_need_no_list_to_be_named_in(tmp_path):
    folder = write_parts(tmp_path, [[("a", 1), ("b", 2)], [("b", 3)]])
    assert join(OrderedRecords(folder, SCHEMA, "ours"))[0].equals(read_records(folder, SCHEMA, "ours", COLUMNS))


def test_columns_may_have_any_name(tmp_path):
    schema = RecordSchema((Column("range", "int", "a number"), Column("unit range", "int", "another")))
    folder = RunFolder(tmp_path)
    folder.records_path.mkdir()
    drawn = np.random.default_rng(2).permutation(200)
    for part in np.split(drawn, 20):
        rows = [{"unit": f"unit-{number:03}", "range": int(number), "unit range": -int(number)} for number in part]
        write_part(schema.frame(rows).with_columns(answers=pl.lit("ours")), folder.records_path)
    ordered = OrderedRecords(folder, schema, "ours", rows=20)
    assert is_distributed(ordered)
    assert join(ordered, schema.light)[0].equals(read_records(folder, schema, "ours", schema.light))


def test_temporary_files_are_removed_when_reading_stops_early(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    drawn = np.random.default_rng(1).permutation(200)
    parts = [[(f"unit-{number:03}", 1) for number in part] for part in np.split(drawn, 20)]
    ordered = OrderedRecords(write_parts(tmp_path / "run", parts), SCHEMA, "ours", rows=20)
    chunks = ordered.iterate(COLUMNS)
    next(chunks)
    assert list((tmp_path / "scratch").iterdir())
    chunks.close()
    assert not list((tmp_path / "scratch").iterdir())
