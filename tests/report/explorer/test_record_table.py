"""Selections against the plain way: a loop over dicts, and Python's own sort."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.explorer.query import UNIT, Field, Query
from hardlook.report.explorer.record_table import BINS, RecordTable

FIELDS = (
    UNIT,
    Field("iou", "IoU", "", "quality", "float"),
    Field("context", "context", "", "slice", "text"),
    Field("fold", "fold", "", "slice", "int"),
    Field("mixed", "mixed", "", "slice", "bool"),
    Field("pixels", "pixels", "", "measurement", "int"),
)

CONTEXTS = ("", "Beach", "sea")

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "iou": st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1),
            "context": st.sampled_from(CONTEXTS),
            "fold": st.integers(0, 2),
            "mixed": st.booleans(),
            "pixels": st.integers(-5, 5),
        }
    ),
    min_size=1,
    max_size=30,
)

QUERIES = st.builds(
    Query,
    text=st.sampled_from(["", "u1", "U-0", "zz"]),
    values=st.sampled_from(
        [
            (),
            (("context", ("",)),),
            (("context", ("sea", "nowhere")),),
            (("fold", ("1",)),),
            (("context", ("nowhere",)),),
        ]
    )
    | st.just((("context", ("Beach",)), ("mixed", ("true",)))),
    ranges=st.sampled_from([(), (("iou", 0.25, None),), (("iou", None, 0.5), ("pixels", -2.0, 2.5))]),
    sort=st.sampled_from([field.key for field in FIELDS]),
    descending=st.booleans(),
)


def table_of(rows, stored=False):
    """The rows as dicts, and as a table in memory or one that stays in its file."""
    units = [f"u-{number:02d}" for number in range(len(rows))]
    named = [{"unit": unit, **row} for unit, row in zip(units, rows, strict=True)]
    kinds = {"iou": pl.Float64, "context": pl.Enum(CONTEXTS), "fold": pl.Int64, "mixed": pl.Boolean, "pixels": pl.Int64}
    if stored:
        kinds["context"] = pl.String
    frame = pl.DataFrame(named, schema={"unit": pl.String, **kinds})
    return named, RecordTable(frame.lazy() if stored else frame, FIELDS)


def kept(row, query):
    texts = {**row, "mixed": str(row["mixed"]).lower(), "fold": str(row["fold"])}
    if query.text.lower() not in row["unit"].lower():
        return False
    if any(texts[key] not in values for key, values in query.values):
        return False
    for key, low, high in query.ranges:
        value = row[key]
        if value is None or (low is not None and value < low) or (high is not None and value > high):
            return False
    return True


@given(ROWS, QUERIES, st.booleans())
def test_a_selection_is_what_a_loop_finds(rows, query, stored):
    named, table = table_of(rows, stored)
    wanted = [row for row in named if kept(row, query)]
    known = [row for row in wanted if row[query.sort] is not None]
    if query.sort == "unit":
        known.sort(key=lambda row: row["unit"], reverse=query.descending)
    elif query.descending:
        known.sort(key=lambda row: row["unit"])
        known.sort(key=lambda row: row[query.sort], reverse=True)
    else:
        known.sort(key=lambda row: (row[query.sort], row["unit"]))
    expected = known + [row for row in wanted if row[query.sort] is None]
    selection = table.select(query)
    assert [row["unit"] for row in table.rows(selection.rows)] == [row["unit"] for row in expected]
    values = [row["iou"] for row in wanted if row["iou"] is not None]
    mean = selection.means["iou"]
    assert mean is None if not values else math.isclose(mean, sum(values) / len(values), abs_tol=1e-12)
    assert selection.histogram.counts.sum() == len(values)
    assert selection.histogram.missing == len(wanted) - len(values)


@given(ROWS, st.booleans())
def test_groups_are_counts_and_means_of_each_value(rows, stored):
    named, table = table_of(rows, stored)
    for key, groups in table.select(Query()).groups.items():
        for value, count, mean in groups:
            own = [row for row in named if str(row[key]).lower() == value.lower()]
            values = [row["iou"] for row in own if row["iou"] is not None]
            assert count == len(own)
            assert (mean is None) == (not values)
            assert mean is None or math.isclose(mean, sum(values) / len(values), abs_tol=1e-12)


@given(ROWS, st.integers(1, 7))
def test_pages_together_are_the_list(rows, size):
    _, table = table_of(rows)
    selection = table.select(Query(sort="iou"))
    pages = [selection.page(number, size) for number in range(1, len(rows) // size + 2)]
    assert np.concatenate(pages).tolist() == selection.rows.tolist()


def test_the_spread_counts_as_numpy_does():
    values = np.linspace(0, 1, 101)
    _, table = table_of([{"iou": float(v), "context": "sea", "fold": 0, "mixed": False, "pixels": 0} for v in values])
    spread = table.select(Query()).histogram
    assert spread.counts.tolist() == np.histogram(values, BINS, (0, 1))[0].tolist()


@pytest.mark.parametrize("stored", [False, True])
def test_columns_that_say_the_same_of_all_are_not_shown(stored):
    rows = [{"iou": 0.5, "context": "sea", "fold": n, "mixed": False, "pixels": 3} for n in range(3)]
    _, table = table_of(rows, stored)
    assert [field.key for field in table.shown] == ["unit", "iou", "fold"]


@given(ROWS)
def test_a_stored_table_has_the_summaries_of_one_in_memory(rows):
    (named, table), (_, stored) = table_of(rows), table_of(rows, stored=True)
    for field in FIELDS:
        ours, theirs = stored.summaries[field.key], table.summaries[field.key]
        assert (ours.constant, ours.low, ours.high, ours.values) == (
            theirs.constant, theirs.low, theirs.high, theirs.values,
        )  # fmt: skip
    assert stored.rows([len(rows) - 1, 0]) == [named[-1], named[0]] and stored.row(0) == named[0]
    assert stored.rows([]) == []
    # What a table in a file keeps counts as well, or tables of a growing run would never be forgotten.
    assert table.nbytes > 0 and stored.nbytes >= stored._orders.max_size + stored._selections.max_size


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("unit", ["u-01", "nowhere", "../u-01", ""])
def test_units_are_looked_up_by_their_whole_id(unit, stored):
    _, table = table_of([{"iou": 0.5, "context": "", "fold": 0, "mixed": True, "pixels": 0}] * 3, stored)
    assert table.row_of(unit) == (1 if unit == "u-01" else None)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(("values", "ends"), [([1.0, math.inf, 3.0], (1.0, 3.0)), ([-math.inf, None], (0.0, 1.0))])
def test_infinite_qualities_are_in_no_bin(stored, values, ends):
    row = {"context": "sea", "fold": 0, "mixed": True, "pixels": 1}
    _, table = table_of([{**row, "iou": value} for value in values], stored=stored)
    histogram = table.select(Query()).histogram
    assert (histogram.edges[0], histogram.edges[-1]) == ends
    assert (
        histogram.counts.sum()
        == len(values) - histogram.missing
        == sum(value is not None and math.isfinite(value) for value in values)
    )
