import math
from types import UnionType
from typing import get_args

import numpy as np
import pytest

from hardlook.contract import sections as parts
from hardlook.export.block_names import name_blocks
from hardlook.export.blocks import marks_of, sections_as_data
from hardlook.report.names import named_blocks

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
    marks = marks_of(block)
    assert marks.rows
    assert {len(row) for row in marks.rows} == {len(marks.columns)}


def test_the_numbers_are_those_of_the_blocks():
    (section,) = sections_as_data([parts.Section("S", "t", BLOCKS)], name_blocks([parts.Section("S", "t", BLOCKS)]))
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
    names = name_blocks(sections)
    assert names == [["by-size-3", "by-size"], ["dots", "by-size-2", "by-size-4"]]
    assert list(named_blocks(sections)) == ["by-size", "dots", "by-size-2"]


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="expected a block of a report, got int"):
        marks_of(3)
