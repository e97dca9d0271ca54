"""Which records and failures of a unit count, and the errors for parts that cannot be read."""

import json

import polars as pl
import pytest
from small_runs import replace_part, small_run

import hardlook
from hardlook.errors import RunError
from hardlook.harness.checked_json import format_checked_json
from hardlook.harness.records import Column, RecordSchema
from hardlook.harness.runs import record_store
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.record_store import (
    FLUSH_RECORDS,
    FLUSH_SECONDS,
    Failure,
    RecordWriter,
    find_contradicting_units,
    has_checksum,
    iterate_answered_units,
    list_parts,
    read_all_records,
    read_failures,
    read_part,
    read_records,
    write_failures,
    write_part,
)
from hardlook.harness.runs.scoring import score_run


@pytest.fixture
def run(tmp_path):
    small_run(tmp_path / "run", scenes=4)
    folder = RunFolder(tmp_path / "run")
    manifest = folder.read_manifest()
    manifest["code"]["hardlook"] = "0.0.7"
    folder.manifest_path.write_text(json.dumps(manifest))
    return folder


def rewrite(folder, change):
    for part in folder.records_path.glob("part-*"):
        replace_part(part, change(pl.read_parquet(part)))


def refusal(folder):
    with pytest.raises(RunError) as caught:
        score_run(folder)
    assert "\n" not in caught.value.what
    assert caught.value.file.startswith(str(folder.records_path))
    return caught.value


def test_records_that_lack_columns_name_them_and_the_version(run):
    rewrite(run, lambda frame: frame.drop("ignored", "cells"))
    error = refusal(run)
    assert "the records have no column cells, ignored: " in error.what
    code = run.read_manifest()["code"]["fingerprint"][:8]
    assert f"run.json: hardlook 0.0.7, code {code}; this is {hardlook.__version__}" in error.what
    assert "run it again" in error.remedy and "use the version that made it" in error.remedy


def test_columns_of_another_type_are_named(run):
    rewrite(run, lambda frame: frame.with_columns(pl.col("ignored").cast(pl.String)))
    assert "have other types in column ignored" in refusal(run).what


def test_a_run_that_does_not_say_who_made_it(run):
    manifest = run.read_manifest()
    del manifest["code"]
    run.manifest_path.write_text(json.dumps(manifest))
    rewrite(run, lambda frame: frame.drop("ignored"))
    assert "hardlook unknown" in refusal(run).what


def test_columns_of_a_newer_version_do_no_harm(run):
    before = score_run(run).scorecard
    rewrite(run, lambda frame: frame.with_columns(later=pl.lit(1)))
    assert score_run(run).scorecard == before


def test_a_torn_part_is_not_taken_for_an_old_one(run):
    part = next(run.records_path.glob("part-*"))
    part.write_bytes(part.read_bytes()[:100])
    error = refusal(run)
    assert "is damaged" in error.what and f"hardlook verify {run.path} --repair" in error.remedy


def list_contradicting_units(folder, schema, answers):
    return find_contradicting_units(read_all_records(folder, schema, answers, ["unit", "hits"])[0])


def write_two_records(folder):
    """Write two parts with different records of one unit; return the schema and the values by part name."""
    schema = RecordSchema((Column("hits", "int", "how many"),))
    for hits in (1, 2):
        writer = RecordWriter(folder, schema, "answers")
        writer.add([{"unit": "a", "hits": hits}], [])
        writer.flush()
    parts = sorted(folder.records_path.glob("part-*.parquet"))
    return schema, [pl.read_parquet(part)["hits"][0] for part in parts]


def test_of_two_records_of_a_unit_the_first_part_counts(tmp_path):
    folder = RunFolder(tmp_path)
    schema, (first, last) = write_two_records(folder)
    records = read_records(folder, schema, "answers", ["unit", "hits"])
    assert records["hits"].to_list() == [first] != [last]
    assert list_contradicting_units(folder, schema, "answers") == ["a"]


def test_equal_records_of_a_unit_in_two_parts_do_not_contradict(tmp_path):
    folder, schema = RunFolder(tmp_path), RecordSchema((Column("hits", "int", "how many"),))
    for part in ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"c": 3}, {"d": 4, "a": 1}):
        writer = RecordWriter(folder, schema, "answers")
        writer.add([{"unit": unit, "hits": hits} for unit, hits in part.items()], [])
        writer.flush()
    assert list_contradicting_units(folder, schema, "answers") == ["b"]
    assert list_contradicting_units(folder, schema, "other answers") == []


def test_units_are_answered_in_any_part_and_only_under_these_answers(tmp_path):
    folder, schema = RunFolder(tmp_path), RecordSchema(())
    assert list(iterate_answered_units(folder, "mine")) == []
    for answers, units in (("mine", "ab"), ("mine", "c"), ("other", "cd")):
        writer = RecordWriter(folder, schema, answers)
        writer.add([{"unit": unit} for unit in units], [Failure("e", "evaluate", "broken", "")])
        writer.flush()
    assert sorted(unit for part in iterate_answered_units(folder, "mine") for unit in part) == ["a", "b", "c"]
    assert sorted(unit for part in iterate_answered_units(folder, "other") for unit in part) == ["c", "d"]


def test_of_two_failures_of_a_unit_the_latest_counts(tmp_path):
    folder = RunFolder(tmp_path)
    schema = RecordSchema(())
    for error in ("z came first", "a came second"):
        writer = RecordWriter(folder, schema, "answers")
        writer.add([], [Failure("a", "evaluate", error, "")])
        writer.flush()
    failures = write_failures(folder, "answers")
    assert failures["error"].to_list() == ["a came second"]
    assert pl.read_parquet(folder.failures_path).equals(failures)


def test_failures_come_in_the_order_of_their_units(tmp_path):
    folder, units = RunFolder(tmp_path), [f"unit-{number:03d}" for number in range(200)]
    writer = RecordWriter(folder, RecordSchema(()), "answers")
    writer.add([], [Failure(unit, "evaluate", "broken", "") for unit in reversed(units)])
    writer.flush()
    assert write_failures(folder, "answers")["unit"].to_list() == units


def test_a_column_that_was_added_later_has_its_default_in_earlier_parts(tmp_path):
    write_part(pl.DataFrame({"unit": ["a", "b"], "hits": [1, 2], "answers": ["x", "x"]}), tmp_path / "records")
    [part] = list_parts(tmp_path / "records")
    defaults = {"later": pl.lit(7).alias("later")}
    assert read_part(part, ["later", "unit"], defaults).rows() == [(7, "a"), (7, "b")]
    assert read_part(part, ["unit", "hits"], defaults).rows() == [("a", 1), ("b", 2)]
    for given in (None, {}, {"other": pl.lit(0).alias("other")}):
        with pytest.raises(RunError, match="the records have no column later"):
            read_part(part, ["unit", "later"], given)


def test_units_and_fingerprints_that_are_no_text_are_refused(tmp_path):
    write_part(pl.DataFrame({"unit": [1], "answers": ["x"]}), tmp_path / "records")
    [part] = list_parts(tmp_path / "records")
    with pytest.raises(RunError, match="have other types in column unit"):
        read_part(part, ["unit", "answers"])
    assert read_part(part, ["answers"]).rows() == [("x",)]


def test_only_the_units_that_are_asked_for_are_read(tmp_path):
    folder, schema = RunFolder(tmp_path), RecordSchema((Column("hits", "int", "how many"),))
    for answers, rows in (("mine", {"a": 1, "b": 2, "c": 3}), ("other", {"a": 9, "d": 4})):
        writer = RecordWriter(folder, schema, answers)
        writer.add([{"unit": unit, "hits": hits} for unit, hits in rows.items()], [])
        writer.flush()
    assert read_records(folder, schema, "mine", ["unit", "hits"], ["c", "a", "d"]).rows() == [("a", 1), ("c", 3)]
    assert read_records(folder, schema, "mine", ["unit", "hits"], []).rows() == []
    found, others = read_all_records(folder, schema, "mine", ["unit"])
    assert found["unit"].to_list() == ["a", "b", "c"] and list(others.values()) == [2]
    [part] = others
    assert pl.read_parquet(part)["answers"].unique().to_list() == ["other"]


@pytest.mark.parametrize(
    ("seconds", "records", "written"),
    [
        (0.0, 1, False),
        (FLUSH_SECONDS - 0.1, FLUSH_RECORDS - 1, False),
        (FLUSH_SECONDS, 1, True),
        (0.0, FLUSH_RECORDS, True),
    ],
)
def test_records_are_written_every_two_seconds_and_by_five_thousand(tmp_path, monkeypatch, seconds, records, written):
    now = [100.0]
    monkeypatch.setattr(record_store.time, "monotonic", lambda: now[0])
    assert (FLUSH_SECONDS, FLUSH_RECORDS) == (2.0, 5000)
    folder = RunFolder(tmp_path)
    writer = RecordWriter(folder, RecordSchema(()), "answers")
    now[0] += seconds
    writer.add([{"unit": str(number)} for number in range(records)], [])
    assert (len(list_parts(folder.records_path)) == 1) == written
    writer.flush()
    assert len(list_parts(folder.records_path)) == 1
    writer.flush()
    assert len(list_parts(folder.records_path)) == 1


def test_what_damage_can_be_noticed_in(tmp_path):
    (tmp_path / "checked.json").write_text(format_checked_json({"a": 1}))
    (tmp_path / "plain.json").write_text('{"a": 1}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "number.json").write_text("3")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "plain.parquet")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "checked.parquet", metadata={"checksum": "1"})
    (tmp_path / f"part-{'0' * 24}.parquet").touch()
    names = {path.name: has_checksum(path) for path in tmp_path.iterdir()}
    assert [name for name, checked in names.items() if not checked] in (
        ["plain.json", "plain.parquet"],
        ["plain.parquet", "plain.json"],
    )
    assert has_checksum(tmp_path / "absent.json")


def test_addresses_stand_in_place_of_the_paths_of_copies(monkeypatch):
    prefixes = [("/cache/voc", "s3://bucket/voc"), ("/cache/ade", "s3://bucket/ade")]
    monkeypatch.setattr(record_store, "list_data_prefixes", lambda: prefixes)
    frame = pl.DataFrame({"unit": ["/cache/voc/1 of /cache/voc", "/cache/ade/2"], "hits": [1, 2]})
    assert record_store._name_addresses(frame).rows() == [
        ("s3://bucket/voc/1 of s3://bucket/voc", 1),
        ("s3://bucket/ade/2", 2),
    ]


def test_a_unit_that_was_answered_after_it_failed_is_no_failure(tmp_path):
    folder, schema = RunFolder(tmp_path), RecordSchema(())
    writer = RecordWriter(folder, schema, "answers")
    writer.add([], [Failure(unit, "evaluate", "broken", "") for unit in "abc"])
    writer.flush()
    assert read_failures(folder, "answers")["unit"].to_list() == ["a", "b", "c"]
    for answers, unit in (("answers", "b"), ("other", "a")):
        writer = RecordWriter(folder, schema, answers)
        writer.add([{"unit": unit}], [])
        writer.flush()
    # A record of another run is no answer of this one.
    assert read_failures(folder, "answers")["unit"].to_list() == ["a", "c"]
    assert read_failures(folder, "other")["unit"].to_list() == []
