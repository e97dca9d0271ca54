import numpy as np
import polars as pl
import pytest

from hardlook.harness.records import Column, RecordSchema

SCHEMA = RecordSchema(
    (
        Column("context", "text", "where", "slice"),
        Column("hits", "int", "how many"),
        Column("share", "float", "how much"),
        Column("cells", "ints", "which"),
        Column("picture", "bytes", "what it looks like", "picture"),
    )
)

RECORD = {"unit": "a", "context": "beach", "hits": 2**40, "share": 0.5, "cells": [1, 2], "picture": b"x"}


def test_integers_survive_a_table_exactly():
    frame = SCHEMA.frame([RECORD])
    assert frame.row(0, named=True) == RECORD
    assert frame.schema["hits"] == pl.Int64


def test_types_do_not_depend_on_the_values():
    assert SCHEMA.frame([{**RECORD, "cells": []}]).schema == SCHEMA.frame([RECORD]).schema == SCHEMA.polars_schema()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hits": 1.0}, "'hits' holds int, got float"),
        ({"hits": True}, "'hits' holds int, got bool"),
        ({"context": None}, "'context' holds text, got NoneType"),
        ({"surplus": 1}, r"missing columns \[\], unexpected \['surplus'\]"),
    ],
)
def test_wrong_records_are_refused_with_the_reason(change, message):
    with pytest.raises(TypeError, match=message):
        SCHEMA.check({**RECORD, **change})
    with pytest.raises(TypeError, match=f"record 'b': .*{message}"):
        SCHEMA.check_all([RECORD, {**RECORD, "unit": "b", **change}, RECORD])


def test_records_are_checked_together_as_one_by_one():
    class Whole(int):
        """An integer of a library."""

    others = [{**RECORD, "hits": Whole(3)}, {**RECORD, "share": np.float64(0.5)}, {**RECORD, "cells": (1, 2)}]
    SCHEMA.check_all([])
    SCHEMA.check_all(others)
    with pytest.raises(TypeError, match="record 'a': missing columns \\['hits'\\], unexpected \\['hit'\\]"):
        SCHEMA.check_all([RECORD, {("hit" if name == "hits" else name): value for name, value in RECORD.items()}])


def test_slices_and_light_columns():
    assert SCHEMA.slices == ("context",)
    assert SCHEMA.light == ("unit", "context", "hits", "share", "cells")


def test_a_column_that_came_later_has_its_default_where_a_record_lacks_it():
    later = RecordSchema(
        (
            *SCHEMA.columns,
            Column("rules", "text", "which", default=""),
            Column("absent", "ints", "which are not there", default=[]),
        )
    )
    frame = later.frame([RECORD, {**RECORD, "unit": "b", "rules": "lvis", "absent": [3]}])
    assert frame.select("rules", "absent").rows() == [("", []), ("lvis", [3])]
    assert frame.schema == later.polars_schema()
    assert SCHEMA.frame([RECORD]).with_columns(later.defaults().values()).schema == frame.schema
    with pytest.raises(TypeError, match="'rules' holds text, got int"):
        later.check({**RECORD, "rules": 3})
    with pytest.raises(TypeError, match=r"missing columns \['hits'\], unexpected \[\]"):
        later.check({name: value for name, value in RECORD.items() if name != "hits"})
