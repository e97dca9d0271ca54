"""What the page and the table of a leaderboard hold."""

import math

import polars as pl
import pytest
from leaderboard_runs import score, write_run

from hardlook.benchmarks import BUILT_IN, STUDIES, find_benchmark
from hardlook.contract.sections import DotChart, Table
from hardlook.leaderboards.board import make_board
from hardlook.leaderboards.cells import MOST_ROWS
from hardlook.leaderboards.gather import gather
from hardlook.leaderboards.printed_sections import as_block
from hardlook.leaderboards.sections import MOST_DOTS, board_sections
from hardlook.leaderboards.table import COLUMNS, leaderboard_frame
from hardlook.report.page import render_study


def board_of(root):
    found = gather(root)
    [(name, runs)] = found.runs.items()
    return make_board(found.benchmarks[name], runs, found.left_out)


@pytest.fixture
def toss(tmp_path):
    scores = [
        score("lca", 0.55),
        score("hca", math.nan, half=0),
        score("lca", 0.5, fold="0"),
        score("iou", 0.2, **{"class": "cat"}),
    ]
    write_run(tmp_path / "a", scores, benchmark="toss", model="mine")
    write_run(tmp_path / "b", scores, benchmark="toss", model="<script>alert(1)</script>")
    write_run(tmp_path / "c", scores, benchmark="toss", counts=(20, 3, 0))
    return board_of(tmp_path)


def test_sections_from_the_overview_to_the_printed_tables(toss):
    sections = board_sections(toss)
    titles = [section.title for section in sections]
    assert titles == ["Who stands where", "LCA", "HCA", "By slice", "What was left out", "Published tables"]
    assert [len(section.blocks) for section in sections[:2]] == [1, 2]
    chart, table = sections[1].blocks
    assert isinstance(chart, DotChart) and isinstance(table, Table)
    assert [dot.group for dot in chart.rows] == ["runs"] * 2 + ["published"] * 5
    assert len(table.rows) == 7
    assert sections[-2].blocks[0].rows == (("c", "toss", "unfinished: 3 of 20 units are scored"),)
    assert [block.title for block in sections[-1].blocks] == [table.title for table in toss.card.published_tables()]


def test_names_from_folders_cannot_run_as_scripts(toss):
    page = render_study(board_sections(toss), title="Board")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_table_has_every_score_and_slice_and_all_that_is_published(toss):
    frame = leaderboard_frame([toss])
    assert tuple(frame.columns) == COLUMNS
    runs = frame.filter(pl.col("kind") == "run")
    assert len(runs) == 2 * 4
    [fold] = runs.filter((pl.col("method") == "mine") & (pl.col("slice") == "fold: 0")).to_dicts()
    assert (fold["score"], fold["value"], fold["low"], fold["n"], fold["folder"], fold["date"]) == (
        "lca", 0.5, 0.49, 20, "a", "2030-01-02",
    )  # fmt: skip
    assert runs.filter(pl.col("score") == "hca")["value"].null_count() == 2
    printed = frame.filter(pl.col("kind") == "published")
    assert len(printed) == sum(len(row.values) for row in toss.card.published)
    hsnet = printed.filter((pl.col("method") == "HSNet") & (pl.col("score") == "gs") & (pl.col("slice") == ""))
    assert hsnet["value"].to_list() == [0.8747]


def test_many_runs_are_cut_on_the_page_and_whole_in_the_table(tmp_path):
    for index in range(MOST_ROWS + 1):
        write_run(tmp_path / f"{index:03}", [score("miou", index / 1000)], model=f"m{index}")
    board = board_of(tmp_path)
    chart, table = board_sections(board)[1].blocks
    assert (len(chart.rows), len(table.rows)) == (MOST_DOTS, MOST_ROWS)
    assert "leaderboard.parquet has all" in table.caption
    assert table.rows[0][1] == f"m{MOST_ROWS}"
    assert leaderboard_frame([board]).height == MOST_ROWS + 1


@pytest.mark.parametrize("name", [*BUILT_IN, *STUDIES])
def test_a_page_shows_every_printed_digit(name):
    for table in find_benchmark(name).card.published_tables():
        block = as_block(table)
        for printed, shown in zip(table.rows, block.rows, strict=True):
            for before, after in zip(printed, shown, strict=True):
                if isinstance(after, float):
                    assert float(f"{after:.{block.decimals}f}") == before
                elif isinstance(before, float):
                    assert float(after) == before
                else:
                    assert after == before
