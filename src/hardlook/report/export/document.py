"""The exported document of a run: built, written with its records, and its scorecard read back.

Records are written a few thousand rows at a time. Their columns are the unit's id, the benchmark's own without
pictures, and one for each quality of a unit. Texts, whole numbers and booleans are written as they are; bytes are in
base64; lists are arrays.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import hardlook
from hardlook.errors import DataError
from hardlook.harness.scorecard import SCHEMA as SCORECARD_SCHEMA
from hardlook.harness.scorecard import Score, Scorecard, note_to_json
from hardlook.harness.sections import (
    Block,
    CurveChart,
    DialChart,
    DistributionChart,
    DotChart,
    Gallery,
    HeatMap,
    Line,
    ScatterChart,
    Section,
    SlopeChart,
    Table,
)
from hardlook.report.block_names import make_unique_name, name_blocks
from hardlook.report.charts.distribution import tabulate_distribution
from hardlook.report.compare.shared_units import EVERY_BYTE
from hardlook.report.html_tables import pad_rows
from hardlook.report.json_values import dump_json, to_json_value

if TYPE_CHECKING:
    import polars as pl

    from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
    from hardlook.harness.runs.scoring import ScoredRun


SCHEMA = "hardlook.export/1"
ROWS_AT_ONCE = 5_000

_SCORE_FIELDS = ("reading", "comparable", "standard_error", "undefined", "rests_on", "reason", "rough")
# From the keys of an interval in a score row to those in scores.json.
_INTERVAL = {name: name for name in ("low", "high", "level", "method", "resampled")} | {"resampled_n": "n"}
_POINT = ("line", "x", "y", "low", "high")


def build_document(scored: ScoredRun) -> dict[str, Any]:
    """What `hardlook export --no-records` writes, as a dict of JSON values in the order of the schema."""
    manifest, card, scorecard = scored.manifest, scored.benchmark.card, scored.scorecard
    titles = {score.name: score.title for score in card.scores}
    sections = scored.build_sections()
    return {
        "schema": SCHEMA,
        "hardlook": {"exported_by": hardlook.__version__, "run_by": manifest.get("code", {}).get("hardlook")},
        "created": manifest["created"],
        "benchmark": _build_benchmark(card, scorecard.benchmark, scorecard.version),
        "model": _build_model(manifest["model"], scorecard.model),
        "options": to_json_value(scored.options.model_dump(mode="json")),
        "readings": [to_json_value(asdict(reading)) for reading in scorecard.readings],
        "data": list_data_fingerprints(manifest["answers"]["parts"]),
        "fingerprints": {
            "answers": manifest["answers"]["fingerprint"],
            "units": manifest["answers"]["parts"].get("units"),
        },
        "units": asdict(scorecard.units),
        "left_out": [to_json_value(note_to_json(note)) for note in scorecard.left_out],
        "noted": [to_json_value(note_to_json(note)) for note in scorecard.noted],
        "scores": [build_score_row(score, titles.get(score.name, score.name)) for score in scorecard.scores],
        "failures": scored.failures.select("unit", "stage", "error", "at").to_dicts(),
        "sections": build_section_data(sections),
    }


def list_data_fingerprints(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Name and fingerprint of each dataset of a run, from the manifest's `answers.parts`.

    >>> list_data_fingerprints({"threads": 1, "data voc (every byte)": "5f2d"})
    [{'name': 'voc', 'fingerprint': '5f2d', 'every_byte': True}]
    """
    named = {name.removeprefix("data "): value for name, value in parts.items() if name.startswith("data ")}
    return [
        {"name": name.removesuffix(EVERY_BYTE), "fingerprint": str(value), "every_byte": name.endswith(EVERY_BYTE)}
        for name, value in named.items()
    ]


def _build_benchmark(card: BenchmarkCard, name: str, version: str) -> dict[str, Any]:
    facts = {key: getattr(card, key) for key in ("title", "summary", "role", "citation", "data_licence")}
    scores, qualities = [_build_meaning(score) for score in card.scores], [asdict(one) for one in card.qualities]
    return {"name": name, "version": version, **facts, "scores": scores, "qualities": qualities}


def _build_meaning(score: ScoreMeaning) -> dict[str, Any]:
    """The meaning of a score with the keys of the schema."""
    fields = asdict(score)
    return fields | {"directed": fields.pop("ranked"), "turned": fields.pop("inverted_slices")}


def _build_model(identity: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """The model's name, arguments and identity; stored predictions have no identity."""
    if identity is None:
        return {"name": name, "args": {}, "identity": None}
    known = {key: to_json_value(identity.get(key)) for key in ("role", "source", "weights", "device")}
    return {"name": name, "args": to_json_value(identity["args"]), "identity": known}


def build_score_row(score: Score, title: str) -> dict[str, Any]:
    """A score as a flat row; without an interval its fields are None.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> score = Score("miou", 0.5, 10, Interval(0.4, 0.6, 0.95, "percentile", 10, "image"), {"class": "cat"})
    >>> row = build_score_row(score, "Mean IoU")
    >>> row["low"], row["resampled"], row["slice"]
    (0.4, 'image', {'class': 'cat'})
    """
    interval = {key: getattr(score.interval, field, None) for key, field in _INTERVAL.items()}
    row = {"name": score.name, "title": title, "slice": dict(score.slice), "value": score.value, "n": score.n}
    more = {name: getattr(score, name) for name in _SCORE_FIELDS}
    fields: dict[str, Any] = to_json_value({**row, **interval, **more, "rests_on": dict(score.rests_on)})
    fields["wider"] = to_json_value(asdict(score.wider)) if score.wider else None
    return fields


def read_scorecard(document: Mapping[str, Any]) -> Scorecard:
    """The scorecard of an exported document, equal to that of the run's `scores.json`.

    >>> read_scorecard({"schema": "something/1"})
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: expected a document of schema 'hardlook.export/1', got 'something/1'
    """
    if document.get("schema") != SCHEMA:
        raise DataError(f"expected a document of schema {SCHEMA!r}, got {document.get('schema')!r}")
    kept = {
        "schema": SCORECARD_SCHEMA,
        "benchmark": document["benchmark"]["name"],
        "version": document["benchmark"]["version"],
        "model": document["model"]["name"],
        "scores": [_restore_score(row) for row in document["scores"]],
        **{key: document[key] for key in ("readings", "left_out", "noted", "units") if key in document},
    }
    return Scorecard.from_json(dump_json(kept))


def _restore_score(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as in scores.json, where an interval is an object."""
    interval = None if row["method"] is None else {field: row[key] for key, field in _INTERVAL.items()}
    names = ("name", "value", "n", "slice", *_SCORE_FIELDS, "wider")
    return {key: row[key] for key in names if key in row} | {"interval": interval}


@dataclass(frozen=True)
class BlockData:
    """A block as columns and rows, with the names of its axes and its reference lines."""

    kind: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    axes: dict[str, str] = field(default_factory=dict)
    references: Sequence[tuple[str, float]] = ()


def build_section_data(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Every section with its blocks, each with a unique name."""
    return [
        {
            "title": section.title,
            "text": section.text,
            "blocks": [_build_block(block, name) for block, name in zip(section.blocks, named, strict=True)],
        }
        for section, named in zip(sections, name_all_blocks(sections), strict=True)
    ]


def _build_block(block: Block, name: str) -> dict[str, Any]:
    data = tabulate_block(block)
    return {
        "type": data.kind,
        "name": name,
        "title": block.title,
        "caption": block.caption,
        "axes": data.axes,
        "columns": list(data.columns),
        "rows": to_json_value(data.rows),
        "references": [{"label": label, "value": to_json_value(value)} for label, value in data.references],
    }


def tabulate_block(block: Block) -> BlockData:
    """The block as columns and rows: fixed columns per kind of block, one row per mark.

    A distribution is exported by its counts, mean and quartiles, since its values are in the records.

    >>> from hardlook.harness.sections import Dot
    >>> chart = DotChart("IoU by class", "Higher is better.", (Dot("cat", 0.8, 0.7, 0.9),), axis="IoU")
    >>> tabulate_block(chart).columns, tabulate_block(chart).rows
    (('group', 'label', 'value', 'low', 'high'), [('', 'cat', 0.8, 0.7, 0.9)])
    """
    rows: list[tuple[Any, ...]]
    match block:
        case DotChart():
            rows = [(row.group, row.label, row.value, row.low, row.high) for row in block.rows]
            columns = ("group", "label", "value", "low", "high")
            return BlockData("dots", columns, rows, {"value": block.axis}, block.references)
        case CurveChart():
            axes = {"x": block.x_axis, "y": block.y_axis}
            return BlockData("curves", _POINT, _list_points(block.lines), axes)
        case DialChart():
            rho = dict(zip((line.name for line in block.lines), block.spearman, strict=False))
            rows = [(*point, rho.get(point[0]), point[0] in block.controls) for point in _list_points(block.lines)]
            axes = {"x": "setting of the dial", "y": block.score}
            return BlockData("dial", (*_POINT, "spearman", "control"), rows, axes)
        case HeatMap():
            rows = [(name, *values) for name, values in zip(block.rows, block.values, strict=True)]
            axes = {"row": block.row_axis, "column": block.column_axis}
            return BlockData("heat-map", ("row", *block.columns), rows, axes)
        case ScatterChart():
            rows = [(spot.group, spot.label, spot.x, spot.y) for spot in block.spots]
            axes = {"x": block.x_axis, "y": block.y_axis}
            return BlockData("scatter", ("group", "label", "x", "y"), rows, axes)
        case DistributionChart():
            summary = tabulate_distribution(block)
            return BlockData("distribution", summary.columns, summary.rows, {"value": block.axis})
        case SlopeChart():
            rows = [(row.label, row.left, row.right, row.note) for row in block.rows]
            axes = {"left": block.left, "right": block.right, "value": block.axis}
            return BlockData("slope", ("label", "left", "right", "note"), rows, axes)
        case Table():
            return BlockData("table", block.columns, pad_rows(block.rows, len(block.columns)))
        case Gallery():
            return BlockData("gallery", ("unit", "caption"), [(one.unit, one.caption) for one in block.examples])
    raise TypeError(f"expected a block of a report, got {type(block).__name__}")


def _list_points(lines: Sequence[Line]) -> list[tuple[Any, ...]]:
    points: list[tuple[Any, ...]] = []
    for line in lines:
        low, high = ([None] * len(line.x) if band is None else band for band in (line.low, line.high))
        points += [(line.name, *point) for point in zip(line.x, line.y, low, high, strict=True)]
    return points


def name_all_blocks(sections: Sequence[Section]) -> list[list[str]]:
    """A unique name for each block of each section: those of `name_blocks`, and names for galleries.

    >>> from hardlook.harness.sections import Table
    >>> iou = Table("IoU of each class", "", (), ())
    >>> name_all_blocks([Section("a", "", (iou, Gallery("Worst", "", ()))), Section("b", "", (iou,))])
    [['iou-of-each-class', 'worst'], ['iou-of-each-class-2']]
    """
    taken = list(name_blocks(sections))
    # `name_blocks` keeps the order of the blocks.
    in_order = iter(tuple(taken))

    def name(block: Block) -> str:
        if not isinstance(block, Gallery):
            return next(in_order)
        taken.append(make_unique_name(block.title, taken))
        return taken[-1]

    return [[name(block) for block in section.blocks] for section in sections]


@dataclass(frozen=True)
class ExportedRecords:
    """The records of a run: the columns, each with name, type, kind and meaning, the number of rows, and the rows."""

    scored: ScoredRun

    @property
    def columns(self) -> list[dict[str, str]]:
        """The columns in order."""
        benchmark = self.scored.benchmark
        columns = [("unit", "text", "unit", "the unit's id")]
        columns += [
            (one.name, one.type, one.kind, one.meaning) for one in benchmark.schema.columns if one.kind != "picture"
        ]
        if benchmark.qualities is not None:
            # The prefix distinguishes a quality from a measurement of the same name.
            columns += [(f"quality.{one.name}", "float", "quality", one.title) for one in benchmark.card.qualities]
        return [dict(zip(("name", "type", "kind", "meaning"), column, strict=True)) for column in columns]

    @property
    def count(self) -> int:
        """How many there are."""
        return self.scored.scorecard.units.scored if self.scored.is_chunked else len(self.scored.records)

    def rows(self, at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[Any, ...]]:
        """Rows in the order of the units, as values of JSON."""
        benchmark, names = self.scored.benchmark, [column["name"] for column in self.columns]
        for records in self.scored.iterate_records():
            table = records
            if benchmark.qualities is not None:
                values = benchmark.qualities(records, self.scored.options)
                qualities = (values[one.name].alias(f"quality.{one.name}") for one in benchmark.card.qualities)
                table = records.with_columns(qualities)
            for part in table.select(names).iter_slices(at_once):
                yield from part.select(_convert_column(name, kind) for name, kind in part.schema.items()).rows()


def _convert_column(name: str, kind: Any) -> pl.Expr:
    """The column as values of JSON.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"a": [0.1, float("nan")], "b": [[float("inf"), 2.0], []]})
    >>> frame.select(_convert_column(name, kind) for name, kind in frame.schema.items()).rows()
    [(0.1, [None, 2.0]), (None, [])]
    """
    import polars as pl

    column = pl.col(name)
    if kind.is_float():
        return pl.when(column.is_finite()).then(column).alias(name)
    if isinstance(kind, pl.List) and kind.inner.is_float():
        return column.list.eval(pl.when(pl.element().is_finite()).then(pl.element()))
    if kind == pl.Binary():
        return column.bin.encode("base64")
    return column


# One encoder for all rows: `json.dumps` would create one per row.
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def write_export(scored: ScoredRun, stream: TextIO, *, records: bool = True, beside: Path | None = None) -> int:
    """Write the document to a stream and return the number of records written.

    Records are part of the document, or NDJSON in the file `beside`; with `records=False` they are left out.
    """
    head = dump_json(build_document(scored))
    table = ExportedRecords(scored) if records else None
    if table is None:
        stream.write(f"{head}\n")
        return 0
    stream.write(head.removesuffix("\n}"))
    stream.write(f',\n "records": {{\n  "columns": {_encode(table.columns)},\n  "count": {table.count},\n')
    if beside is None:
        stream.write('  "rows": [')
        for number, row in enumerate(table.rows()):
            stream.write(f"{',' if number else ''}\n   {_encode(row)}")
        stream.write("\n  ]\n }\n}\n")
    else:
        names = [column["name"] for column in table.columns]
        with open_for_replacement(beside) as lines:
            lines.writelines(f"{_encode(dict(zip(names, row, strict=True)))}\n" for row in table.rows())
        stream.write(f'  "file": {_encode(beside.name)}\n }}\n}}\n')
    return table.count


@contextlib.contextmanager
def open_for_replacement(path: Path) -> Iterator[TextIO]:
    """A stream to a temporary file that replaces `path` once all is written: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        with unfinished.open("w", encoding="utf-8") as stream:
            yield stream
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_schema() -> str:
    """The schema as `hardlook export --schema` prints it.

    >>> import json
    >>> json.loads(read_schema())["properties"]["schema"]
    {'const': 'hardlook.export/1'}
    """
    return files("hardlook.report.export").joinpath("export-1.schema.json").read_text(encoding="utf-8")
