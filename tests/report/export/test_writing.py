import io
import json
from dataclasses import replace

import polars as pl
import pytest

from hardlook.harness.records import Column, RecordSchema
from hardlook.report.export.writing import open_for_replacement, select_exported_records, write_export


def text_of(scored, **more):
    stream = io.StringIO()
    write_export(scored, stream, **more)
    return stream.getvalue()


class Pieces(io.StringIO):
    """A stream that remembers the longest piece it was given."""

    longest = 0

    def write(self, text):
        self.longest = max(self.longest, len(text))
        return super().write(text)


class Own:
    """A benchmark of a user, which has no qualities and a column of every type."""

    qualities = None

    def __init__(self, scored):
        names = ("int", "float", "bool", "text", "bytes", "ints", "floats")
        columns = tuple(Column(f"a_{name}", name, "said", "measurement") for name in names)
        self.card = scored.benchmark.card
        self.schema = RecordSchema((*columns, Column("mask", "bytes", "drawn", "picture")))

    def report(self, records, scorecard):
        return []


@pytest.fixture
def own(closed_miou):
    benchmark = Own(closed_miou)
    row = {
        "unit": "ü", "a_int": 2**60, "a_float": 0.1, "a_bool": True, "a_text": 'a "b"', "a_bytes": b"\x00\xff",
        "a_ints": [1, 2], "a_floats": [0.1, float("nan")], "mask": b"",
    }  # fmt: skip
    second = {**row, "unit": "z", "a_float": float("inf"), "a_ints": [], "a_floats": []}
    records = benchmark.schema.frame([row, second]).select(benchmark.schema.light)
    return replace(closed_miou, benchmark=benchmark, records=records)


def test_records_of_every_type_are_values_of_json(own, exported):
    records = exported(own)["records"]
    assert [column["name"] for column in records["columns"]][:2] == ["unit", "a_int"]
    assert "mask" not in [column["name"] for column in records["columns"]]
    assert records["rows"] == [
        ["ü", 2**60, 0.1, True, 'a "b"', "AP8=", [1, 2], [0.1, None]],
        ["z", 2**60, None, True, 'a "b"', "AP8=", [], []],
    ]


def test_records_are_those_of_the_run_with_their_qualities(closed_miou, exported):
    records = exported(closed_miou)["records"]
    names = [column["name"] for column in records["columns"]]
    own = [name for name in names if not name.startswith("quality.")]
    assert pl.DataFrame(records["rows"], schema=names, orient="row").select(own).rows() == closed_miou.records.rows()
    judged = closed_miou.benchmark.qualities(closed_miou.records, closed_miou.options)
    quality = closed_miou.benchmark.card.qualities[0].name
    place = names.index(f"quality.{quality}")
    assert records["columns"][place]["kind"] == "quality"
    assert [row[place] for row in records["rows"]] == judged[quality].to_list()


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_the_rows_do_not_depend_on_how_many_pass_at_once(closed_miou, size):
    table = select_exported_records(closed_miou)
    assert list(table.rows(size)) == list(table.rows(1000)) and len(table.table) > 3


def test_ndjson_says_the_same_as_the_document(closed_miou, exported, tmp_path):
    within = exported(closed_miou)["records"]
    beside = exported(closed_miou, beside=tmp_path / "r.ndjson")["records"]
    assert beside == {"columns": within["columns"], "count": 8, "file": "r.ndjson"}
    names = [column["name"] for column in within["columns"]]
    lines = [json.loads(line) for line in (tmp_path / "r.ndjson").read_text().splitlines()]
    assert lines == [dict(zip(names, row, strict=True)) for row in within["rows"]]
    assert pl.read_ndjson(tmp_path / "r.ndjson")["unit"].to_list() == closed_miou.records["unit"].to_list()


def test_records_can_be_left_out_and_nothing_else_changes(closed_miou, exported):
    whole, light = exported(closed_miou), exported(closed_miou, records=False)
    assert whole.pop("records")
    assert whole == light


def test_many_records_are_written_in_small_pieces(closed_miou):
    many = pl.concat([closed_miou.records] * 2_000)
    large = replace(closed_miou, records=many, benchmark=Unjudged(closed_miou))
    stream = Pieces()
    assert write_export(large, stream) == 16_000
    assert stream.longest < len(stream.getvalue()) / 20
    assert json.loads(stream.getvalue())["records"]["count"] == 16_000


class Unjudged:
    qualities = None

    def __init__(self, scored):
        self.card, self.schema = scored.benchmark.card, scored.benchmark.schema

    def report(self, records, scorecard):
        return []


def test_a_run_is_exported_alike_every_time(closed_miou):
    assert text_of(closed_miou) == text_of(closed_miou)


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "a.json"
    with open_for_replacement(path) as stream:
        stream.write("first")
    with pytest.raises(RuntimeError), open_for_replacement(path) as stream:
        stream.write("sec")
        raise RuntimeError("killed")
    assert path.read_text() == "first"
    assert list(path.parent.iterdir()) == [path]
