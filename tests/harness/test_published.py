import pytest

from hardlook.errors import DataError
from hardlook.harness.published import fraction, parse_published, percent, read_published

TABLES = (
    "paper,table,title,labels,columns,note\n"
    "P,table-1,Results,2,method|shots|mIoU|half,as printed\nP,names,Names,1,name,\n"
)
CELLS = (
    "paper,table,row,column,value\n"
    "P,table-1,HSNet|1,mIoU,0.58\nP,table-1,HSNet|1,half,\nP,table-1,HSNet|5,mIoU,7\n"
    "P,names,first,,\nP,names,second,,\n"
)


def test_cells_become_tables_in_printed_order():
    published = parse_published(TABLES, CELLS)
    table = published.tables["table-1"]
    assert (table.name, table.title, table.source, table.note) == ("table-1", "Results", "P", "as printed")
    assert table.columns == ("method", "shots", "mIoU", "half")
    assert table.rows == (("HSNet", 1, 0.58, None), ("HSNet", 5, 7, None))
    assert published.tables["names"].rows == (("first",), ("second",))
    assert published.rows("table-1") == ("HSNet|1", "HSNet|5")


def test_cells_are_found_by_row_and_column():
    published = parse_published(TABLES, CELLS)
    assert published.cell("table-1", "HSNet|1", "half") is None
    assert published.number("table-1", "HSNet|5", "mIoU") == 7.0
    with pytest.raises(DataError, match="no published cell 'table-1', row 'PFENet'"):
        published.cell("table-1", "PFENet", "mIoU")
    with pytest.raises(DataError, match="is not a number: None"):
        published.number("table-1", "HSNet|1", "half")


@pytest.mark.parametrize(
    ("tables", "cells", "error"),
    [
        (TABLES, CELLS + "P,table-1,HSNet|1,mIoU,0.6\n", "is there twice"),
        (TABLES, CELLS + "P,table-1,HSNet|1,wIoU,0.6\n", "column 'wIoU' is not in tables.csv"),
        (TABLES, CELLS + "P,table-9,HSNet|1,mIoU,0.6\n", "P, table-9"),
        (TABLES, CELLS + "Q,table-1,PFENet|1,mIoU,0.6\n", "Q, table-1"),
        (TABLES, CELLS.replace("row", "line", 1), "expected the columns paper,table,row,column,value, got paper"),
        (TABLES.replace("title", "name", 1), CELLS, "tables.csv: expected the columns"),
    ],
)
def test_what_does_not_fit_is_named(tables, cells, error):
    with pytest.raises(DataError, match=error):
        parse_published(tables, cells)


def test_percentages_keep_their_digits():
    assert [fraction(value / 100) for value in range(1, 10_000)] == [
        float(f"0.{value:04d}") for value in range(1, 10_000)
    ]
    assert all(percent(fraction(value / 100)) == value / 100 for value in range(0, 10_001))


@pytest.mark.parametrize("system", ["toss", "metacoco", "rclicks", "open_vocabulary"])
def test_every_cell_of_the_package_says_where_it_is_printed(system):
    published = read_published(f"hardlook.{system}")
    assert published.tables
    for name, table in published.tables.items():
        assert table.rows and table.source and table.title and table.name == name
        assert all(len(row) == len(table.columns) for row in table.rows)
