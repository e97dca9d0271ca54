"""Runs of very many units: their tables stay in files, and every page is the same."""

import shutil
from urllib.parse import quote

import polars as pl
import pytest
from explorer_requests import Asking

from hardlook.report.explorer import record_table, run_records
from hardlook.report.explorer.app import make_app
from hardlook.report.explorer.run_data import RunData


@pytest.fixture
def stored(monkeypatch, tmp_path):
    """Every run counts as one of very many units, with a cache of its own."""
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(run_records, "MOST_IN_MEMORY", 3)
    monkeypatch.setattr(record_table, "ROWS", 5)
    monkeypatch.setattr(run_records, "build_record_frame", lambda state: pytest.fail("a table was read into memory"))
    return tmp_path / "cache" / "explorer"


def list_pages(made, keys):
    """Addresses of pages of every kind."""
    unit = quote(next(iter(RunData(made).table(RunData(made).run(keys["strange"])).rows([3])))["unit"])
    pages = [f"/run/{keys['strange']}"]
    filters = (
        "",
        "q=0000",
        "sort=context&order=down",
        "min.image-miou=0.5",
        "is.context=beach",
        "size=5&page=2",
        "q=none",
    )
    for more in filters:
        pages.append(f"/run/{keys['strange']}?view=table&{more}")
    pages += [f"/run/{keys['strange']}/unit?id={unit}", f"/run/{keys['strange']}/unit?id={unit}&with={keys['ragged']}"]
    compare = f"/compare?first={keys['strange']}&second={keys['ragged']}"
    return [*pages, compare, f"{compare}&is.better=first&view=table", f"{compare}&sort=first&view=table"]


def test_every_page_is_that_of_a_table_in_memory(made, keys, request):
    pages = list_pages(made, keys)
    expected = [Asking(make_app(made))(page) for page in pages]
    request.getfixturevalue("stored")
    ask = Asking(make_app(made))
    found = [ask(page) for page in pages]
    assert {one.status for one in (*found, *expected)} == {200}
    for page, ours, theirs in zip(pages, found, expected, strict=True):
        assert ours.words == theirs.words, page


def test_pairs_are_counted_over_units_that_both_have(copied, stored):
    records = copied / "seg" / "ragged" / "records" / "part-5.parquet"
    pl.read_parquet(records)[2:9].write_parquet(records)
    data = RunData(copied)
    first, second = (
        next(run for run in data.index.runs() if run.name == f"seg/{name}") for name in ("strange", "ragged")
    )
    pair = data.pair(first, second, "image-miou")
    assert pair.is_stored and len(pair.table) == 7 and (pair.only_first, pair.only_second) == (7, 0)
    assert sum(pair.better.values()) == 7
    rows = pair.table.rows(range(7))
    assert [row["difference"] for row in rows] == [row["first"] - row["second"] for row in rows]


def test_a_run_without_records_shares_no_units(copied, stored):
    (copied / "seg" / "ragged" / "records" / "part-5.parquet").unlink()
    data = RunData(copied)
    first, second = (
        next(run for run in data.index.runs() if run.name == f"seg/{name}") for name in ("strange", "ragged")
    )
    pair = data.pair(first, second, "image-miou")
    assert pair.is_stored and (len(pair.table), pair.only_first, pair.only_second) == (0, len(data.table(first)), 0)


def test_a_table_whose_file_was_removed_is_made_again(made, keys, stored):
    data = RunData(made)
    run = data.run(keys["strange"])
    assert data.table(run).is_stored
    before = data.table(run).rows([0])
    shutil.rmtree(stored)
    assert data.table(run).rows([0]) == before


def test_damage_is_named_without_its_folder(copied, keys, stored):
    (part,) = (copied / "seg" / "strange" / "records").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-30])
    answer = Asking(make_app(copied))(f"/run/{keys['strange']}")
    assert answer.status != 200 and "part-5.parquet" in answer.words and str(copied) not in answer.text
    assert not stored.is_dir() or not list(stored.iterdir())
