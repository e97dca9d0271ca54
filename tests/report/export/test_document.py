import copy
import io
import json
import math
from dataclasses import replace
from types import UnionType
from typing import get_args

import jsonschema
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import small_run

from hardlook.errors import DataError
from hardlook.harness import sections as parts
from hardlook.harness.records import Column, RecordSchema
from hardlook.harness.scorecard import LeftOut, Reading, Score, Scorecard, UnitCounts
from hardlook.harness.stats.intervals import Interval
from hardlook.report.block_names import name_blocks
from hardlook.report.export.document import SCHEMA as SCHEMA_ID
from hardlook.report.export.document import (
    ExportedRecords,
    build_score_row,
    build_section_data,
    list_data_fingerprints,
    name_all_blocks,
    open_for_replacement,
    read_schema,
    read_scorecard,
    tabulate_block,
    write_export,
)
from hardlook.report.json_values import dump_json

LINES = (parts.Line("a", [0, 1], [0.5, 0.75], np.array([0.4, 0.6]), [0.6, 0.9]), parts.Line("b", [0], [math.nan]))

BLOCKS = (
    parts.DotChart("Dots", "c", (parts.Dot("cat", 0.1 + 0.2, None, None, "pets"),), "IoU", (("chance", 0.5),)),
    parts.CurveChart("Curves", "c", LINES, "clicks", "IoU"),
    parts.DialChart("Dial", "c", LINES, "mIoU", (1.0,), ("b",)),
    parts.HeatMap("Heat", "c", ("cat",), ("beach", "night"), ((0.5, math.nan),), "class", "context"),
    parts.ScatterChart("Scatter", "c", (parts.Spot(1.0, 2.0, "cat", "pets"),), "x", "y"),
    parts.SlopeChart("Slope", "c", (parts.Slope("cat", 0.5, 0.75, "better"),), "old", "new", "IoU"),
    parts.DistributionChart("Distribution", "c", (("all", (1.0, 2.0, 3.0, math.nan)),), "IoU"),
    parts.Table("Table", "c", ("name", "value"), (("cat", 1), ("dog",))),
    parts.Gallery("Gallery", "c", (parts.Example("img-1", "missed"),)),
)


def members(union):
    return [one for part in get_args(union) for one in (members(part) if isinstance(part, UnionType) else [part])]


def test_every_block_that_a_report_can_show_is_exported():
    assert {type(block) for block in BLOCKS} == set(members(parts.Block))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.title)
def test_rows_are_as_wide_as_columns(block):
    marks = tabulate_block(block)
    assert marks.rows
    assert {len(row) for row in marks.rows} == {len(marks.columns)}


def test_the_numbers_are_those_of_the_blocks():
    (section,) = build_section_data([parts.Section("S", "t", BLOCKS)])
    rows = {block["type"]: block["rows"] for block in section["blocks"]}
    assert rows["dots"] == [["pets", "cat", 0.30000000000000004, None, None]]
    assert rows["curves"] == [["a", 0, 0.5, 0.4, 0.6], ["a", 1, 0.75, 0.6, 0.9], ["b", 0, None, None, None]]
    assert rows["dial"][0][-2:] == [1.0, False]
    assert rows["dial"][2][-2:] == [None, True]
    assert rows["heat-map"] == [["cat", 0.5, None]]
    assert rows["scatter"] == [["pets", "cat", 1.0, 2.0]]
    assert rows["slope"] == [["cat", 0.5, 0.75, "better"]]
    assert rows["distribution"] == [["all", 3, 1, 2.0, 1.0, 1.0, 1.5, 2.0, 2.5, 3.0]]
    assert rows["table"] == [["cat", 1], ["dog", None]]
    assert rows["gallery"] == [["img-1", "missed"]]
    assert section["blocks"][0]["references"] == [{"label": "chance", "value": 0.5}]
    assert section["blocks"][3]["axes"] == {"row": "class", "column": "context"}


def test_names_are_those_of_the_figure_command_and_galleries_get_their_own():
    table, gallery = parts.Table("By size", "", (), ()), parts.Gallery("By size", "", ())
    sections = [parts.Section("S", "", (gallery, table)), parts.Section("T", "", (BLOCKS[0], table, gallery))]
    names = name_all_blocks(sections)
    assert names == [["by-size-3", "by-size"], ["dots", "by-size-2", "by-size-4"]]
    assert list(name_blocks(sections)) == ["by-size", "dots", "by-size-2"]


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="expected a block of a report, got int"):
        tabulate_block(3)


SCHEMA = json.loads(read_schema())

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_export_of_every_benchmark_is_valid_and_gives_its_scorecard_back(small_scored, exported):
    document = exported(small_scored)
    errors = [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(document)]
    assert not errors
    assert read_scorecard(document) == Scorecard.from_json(small_scored.folder.scores_path.read_text())
    assert document["benchmark"]["name"] == small_scored.benchmark.card.name
    names = [block["name"] for section in document["sections"] for block in section["blocks"]]
    assert len(set(names)) == len(names) > 0
    assert len(document["records"]["rows"]) == document["records"]["count"] == document["units"]["scored"]


def test_the_schema_is_one_and_leaves_no_object_open():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def objects(node):
        if isinstance(node, dict):
            if "properties" in node and node.get("type") == "object":
                yield node
            for inner in node.values():
                yield from objects(inner)
        elif isinstance(node, list):
            for inner in node:
                yield from objects(inner)

    found = list(objects(SCHEMA))
    assert len(found) > 15
    assert all(node["additionalProperties"] is False for node in found)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: document.update(extra=1),
        lambda document: document.pop("units"),
        lambda document: document.update(schema="hardlook.export/2"),
        lambda document: document["scores"][0].update(value="0.5"),
        lambda document: document["scores"][0].update(colour="red"),
        lambda document: document["sections"][0]["blocks"][0].update(columns=["label", "value"]),
        lambda document: document["sections"][0]["blocks"][0].update(name="Two Words"),
        lambda document: document["records"].update(file="also.ndjson"),
        lambda document: document["records"].pop("rows"),
        lambda document: document["records"]["columns"][0].update(kind="picture"),
        lambda document: document["units"].update(failed=-1),
        lambda document: document["model"]["identity"].update(path="x"),
    ],
)
def test_the_schema_refuses_what_is_not_in_it(closed_miou, exported, spoil):
    document = copy.deepcopy(exported(closed_miou))
    assert VALIDATOR.is_valid(document)
    spoil(document)
    assert not VALIDATOR.is_valid(document)


# Names below these depend on the benchmark or its blocks.
OPEN = ("options", "args", "axes", "slice", "weights", "rests_on")
# Documents of 0.1 do not have them.
NEW = ("standard_error", "undefined", "rests_on", "reason", "rough", "wider")


def test_every_other_change_of_shape_is_refused(closed_miou, exported):
    document = exported(closed_miou)
    document["scores"], document["sections"] = document["scores"][:2], document["sections"][:1]
    document["records"]["rows"] = document["records"]["rows"][:1]
    assert VALIDATOR.is_valid(document)
    accepted = {(what, *path) for what, *path in shape_changes(document) if VALIDATOR.is_valid(document)}
    assert {change for change in accepted if not set(change[:-1]) & set(OPEN)} == {
        ("drop", "records"),
        ("drop", "noted"),
        *(("drop", "scores", 0, name) for name in NEW),
    }
    assert ("drop", "options", "scenes") in accepted


def shape_changes(document, node=None, path=()):
    """Every key taken away, then with a value of another type, one at a time, the document whole again after each."""
    node = document if node is None else node
    for key in list(node) if isinstance(node, dict) else range(min(len(node), 1)):
        value = node[key]
        if isinstance(node, dict):
            kept = dict(node)
            del node[key]
            yield "drop", *path, key
            node[key] = [1] if isinstance(value, dict) else {"x": {"y": 1}}
            yield "type", *path, key
            node.clear()
            node.update(kept)
        if isinstance(value, dict | list):
            yield from shape_changes(document, value, (*path, key))


def test_what_ran_is_told_as_the_run_folder_tells_it(closed_miou, exported):
    document = exported(closed_miou)
    manifest = json.loads(closed_miou.folder.manifest_path.read_text())
    assert document["model"]["args"] == manifest["model"]["args"]
    assert document["model"]["identity"]["source"] == manifest["model"]["source"]
    assert document["options"] == manifest["options"]
    assert document["fingerprints"]["answers"] == manifest["answers"]["fingerprint"]
    assert document["created"] == manifest["created"]
    assert [row["name"] for row in document["data"]] == ["planted world"]
    assert [score["name"] for score in document["benchmark"]["scores"] if score["headline"]] == ["miou"]


def test_scores_are_exact_and_carry_their_interval(closed_miou, exported):
    rows = {(row["name"], *row["slice"].values()): row for row in exported(closed_miou)["scores"]}
    assert len(rows) == len(closed_miou.scorecard.scores)
    for score in closed_miou.scorecard.scores:
        row = rows[(score.name, *score.slice.values())]
        assert row["value"] == (None if math.isnan(score.value) else score.value)
        assert (row["low"] is None) == (score.interval is None)
        if score.interval:
            assert (row["low"], row["high"]) == (score.interval.low, score.interval.high)
            assert (row["resampled"], row["resampled_n"]) == ("image", score.interval.n)
    assert rows[("miou",)]["title"] == "mIoU"


def test_data_are_named_with_how_much_of_them_was_hashed():
    parts = {"data gt": "a1", "data voc (every byte)": "b2", "model name": "x", "units": "c3"}
    assert list_data_fingerprints(parts) == [
        {"name": "gt", "fingerprint": "a1", "every_byte": False},
        {"name": "voc", "fingerprint": "b2", "every_byte": True},
    ]


def test_failed_units_are_told_with_their_error(tmp_path, exported):
    done = small_run(tmp_path / "run", scenes=8, model="troubled_segmenters:Raises", max_failures=0.5)
    document = exported(done.scored)
    assert VALIDATOR.is_valid(document)
    assert len(document["failures"]) == document["units"]["failed"] > 0
    assert document["units"]["scored"] == document["records"]["count"] == 8 - len(document["failures"])
    assert all(failure["error"] for failure in document["failures"])


def test_stored_predictions_have_a_name_and_no_identity(closed_miou, exported):
    scorecard = replace(closed_miou.scorecard, model="stored predictions")
    document = exported(replace(closed_miou, manifest={**closed_miou.manifest, "model": None}, scorecard=scorecard))
    assert document["model"] == {"name": "stored predictions", "args": {}, "identity": None}
    assert VALIDATOR.is_valid(document)
    assert read_scorecard(document).model == "stored predictions"


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.just(math.nan)

counts = st.integers(0, 2**60)

words = st.text(max_size=8)

intervals = st.none() | st.builds(
    Interval,
    numbers,
    numbers,
    level=st.floats(0.01, 0.99),
    method=st.sampled_from(["percentile", "t"]),
    n=counts,
    resampled=words,
)

scores = st.builds(Score, words, numbers, counts, intervals, st.dictionaries(words, words, max_size=2), words, words)

cards = st.builds(
    Scorecard,
    words,
    words,
    words,
    st.lists(scores, max_size=4).map(tuple),
    st.lists(st.builds(Reading, words, words, words, st.lists(words, max_size=2).map(tuple), words)).map(tuple),
    st.lists(st.builds(LeftOut, words, counts, words, st.lists(words, max_size=2).map(tuple))).map(tuple),
    st.builds(UnitCounts, counts, counts, counts),
)


@given(cards)
def test_any_scorecard_comes_back_from_its_rows(card):
    stored = json.loads(card.to_json())
    document = {
        "schema": SCHEMA_ID,
        "benchmark": {"name": card.benchmark, "version": card.version},
        "model": {"name": card.model},
        "scores": [build_score_row(score, "its title") for score in card.scores],
        **{key: stored[key] for key in ("readings", "left_out", "units")},
    }
    assert read_scorecard(json.loads(dump_json(document))) == Scorecard.from_json(card.to_json())


def test_a_score_without_an_interval_has_its_keys_all_the_same():
    row = build_score_row(Score("gs", 0.25, 3), "GS")
    assert row["value"] == 0.25
    assert all(row[key] is None for key in ("low", "high", "level", "method", "resampled", "resampled_n"))


def test_a_document_of_another_schema_is_refused():
    with pytest.raises(DataError, match=r"expected a document of schema 'hardlook.export/1', got None"):
        read_scorecard({})


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
    return replace(closed_miou, benchmark=benchmark, source=records)


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
    table = ExportedRecords(closed_miou)
    assert list(table.rows(size)) == list(table.rows(1000)) and table.count > 3


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
    large = replace(closed_miou, source=many, benchmark=Unjudged(closed_miou))
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
