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
        Column("weights", "floats", "how much each"),
        Column("picture", "bytes", "what it looks like", "picture"),
    )
)

RECORD = {
    "unit": "a",
    "context": "beach",
    "hits": 2**40,
    "share": 0.5,
    "cells": [1, 2],
    "weights": [0.5],
    "picture": b"x",
}


def test_integers_survive_a_table_exactly():
    frame = SCHEMA.frame([RECORD])
    assert frame.row(0, named=True) == RECORD
    assert frame.schema["hits"] == pl.Int64


def test_types_do_not_depend_on_the_values():
    assert SCHEMA.frame([{**RECORD, "cells": []}]).schema == SCHEMA.frame([RECORD]).schema == SCHEMA.polars_schema()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hits": 1.0}, "'hits' holds int of 64 bits, got float"),
        ({"hits": True}, "'hits' holds int of 64 bits, got bool"),
        ({"hits": 2**63}, "'hits' holds int of 64 bits, got int 9223372036854775808"),
        ({"share": 10**400}, "'share' holds float, got int 1000"),
        ({"share": True}, "'share' holds float, got bool"),
        ({"context": None}, "'context' holds text in UTF-8, got NoneType"),
        ({"context": "\udcff"}, r"'context' holds text in UTF-8, got str '\\udcff'"),
        ({"cells": [1, 1.5]}, "'cells' holds ints of 64 bits, got float 1.5"),
        ({"cells": [1, 2.0]}, "'cells' holds ints of 64 bits, got float 2.0"),
        ({"cells": [True]}, "'cells' holds ints of 64 bits, got bool True"),
        ({"cells": [None]}, "'cells' holds ints of 64 bits, got NoneType"),
        ({"cells": ["3"]}, "'cells' holds ints of 64 bits, got str '3'"),
        ({"cells": [-(2**63) - 1]}, "'cells' holds ints of 64 bits, got int -9223372036854775809"),
        ({"cells": [np.uint64(2**63)]}, "'cells' holds ints of 64 bits, got uint64"),
        ({"cells": [[1]]}, "'cells' holds ints of 64 bits, got list"),
        ({"weights": [0.5, "a"]}, "'weights' holds floats, got str 'a'"),
        ({"weights": [0.5, None]}, "'weights' holds floats, got NoneType"),
        ({"surplus": 1}, r"missing columns \[\], unexpected \['surplus'\]"),
    ],
)
def test_wrong_records_are_refused_with_the_reason(change, message):
    with pytest.raises(TypeError, match=message):
        SCHEMA.check({**RECORD, **change})
    with pytest.raises(TypeError, match=f"record 'b': .*{message}"):
        SCHEMA.check_all([RECORD, {**RECORD, "unit": "b", **change}, RECORD])


def test_a_table_holds_what_the_records_held():
    lowest, highest = -(2**63), 2**63 - 1
    rows = [
        {**RECORD, "hits": lowest, "share": 1, "cells": [lowest, np.int64(3), highest], "weights": [1, 0.5]},
        {**RECORD, "hits": highest, "share": 0.1, "cells": (), "weights": (np.float32(0.1), np.int32(2), 10**30)},
        {**RECORD, "context": "\N{SNOWMAN}\0", "weights": [float("inf"), 0.1]},
    ]
    SCHEMA.check_all(rows)
    frame = SCHEMA.frame(rows)
    assert frame.schema == SCHEMA.polars_schema()
    assert frame["hits"].to_list() == [lowest, highest, 2**40]
    assert frame["share"].to_list() == [1.0, 0.1, 0.5]
    assert frame["cells"].to_list() == [[lowest, 3, highest], [], [1, 2]]
    assert frame["weights"].to_list() == [[1.0, 0.5], [float(np.float32(0.1)), 2.0, 1e30], [float("inf"), 0.1]]
    assert frame["context"][2] == "\N{SNOWMAN}\0"


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
    assert SCHEMA.light == ("unit", "context", "hits", "share", "cells", "weights")


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
    with pytest.raises(TypeError, match="'rules' holds text in UTF-8, got int"):
        later.check({**RECORD, "rules": 3})
    with pytest.raises(TypeError, match=r"missing columns \['hits'\], unexpected \[\]"):
        later.check({name: value for name, value in RECORD.items() if name != "hits"})
