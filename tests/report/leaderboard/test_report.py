"""What the page and the table of a leaderboard hold."""

import math

import polars as pl
import pytest
from leaderboard_runs import score, write_run

from hardlook.harness.registry import BUILT_IN, STUDIES, find_benchmark
from hardlook.harness.sections import DotChart, Table
from hardlook.report.leaderboard.board import build_leaderboard
from hardlook.report.leaderboard.document import COLUMNS, build_frame
from hardlook.report.leaderboard.report import MAX_DOTS, MAX_ROWS, build_sections, make_published_block
from hardlook.report.leaderboard.runs import collect_runs
from hardlook.report.page import render_study


def board_of(root):
    found = collect_runs(root)
    [(name, runs)] = found.runs.items()
    return build_leaderboard(found.benchmarks[name], runs, found.left_out)


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
    sections = build_sections(toss)
    titles = [section.title for section in sections]
    assert titles == [
        "Ranking", "Notes", "LCA", "HCA", "By slice", "The runs", "What was left out", "Published tables",
    ]  # fmt: skip
    assert [len(section.blocks) for section in sections[:3]] == [1, 1, 2]
    chart, table = sections[2].blocks
    assert isinstance(chart, DotChart) and isinstance(table, Table)
    assert [dot.group for dot in chart.rows] == ["runs"] * 2 + ["published"] * 5
    assert len(table.rows) == 7
    [(folder, benchmark, why, remedy)] = sections[-2].blocks[0].rows
    assert (folder, benchmark, why) == ("c", "toss", "unfinished: 3 of 20 units are scored")
    assert "hardlook run" in remedy
    assert [block.title for block in sections[-1].blocks] == [table.title for table in toss.card.published_tables()]


def test_notes_are_told_once_and_rows_carry_their_numbers(tmp_path):
    words = "not comparable: other pairs"
    for name, units in (("a", "abc"), ("b", "abc"), ("c", "xyz")):
        scores = [score("lca", 0.99, comparable=words), score("hca", math.nan, half=0)]
        write_run(tmp_path / name, scores, benchmark="toss", model=name, units=units)
    board = board_of(tmp_path)
    overview, notes, *others = build_sections(board)
    said = {str(number): text for number, text in notes.blocks[0].rows}
    assert list(said) == [str(number) for number in range(1, len(said) + 1)]
    assert len(set(said.values())) == len(said)
    place = overview.blocks[0].columns.index("note")
    told = {row[1]: [said[mark] for mark in row[place].split(", ")] for row in overview.blocks[0].rows}
    own = "Beside the paper: not comparable: other pairs"
    assert told["a"] == told["b"] == [own]
    assert told["c"] == ["No rank: other units than the first run", own]
    assert [text.partition(": ")[0] for text in told["HSNet"]] == ["No rank", "Published"]
    assert "No rank: the runs here cannot be compared with what is published: other pairs" in told["HSNet"]
    undefined = next(section for section in others if section.title == "HCA").blocks[1]
    assert {said[row[3]] for row in undefined.rows if row[1] == "a"} == {"No rank: the score is undefined"}


def test_runs_stand_above_published_rows_that_have_no_rank(tmp_path):
    write_run(tmp_path / "a", [score("lca", 0.01)], benchmark="toss", model="mine")
    write_run(tmp_path / "b", [score("lca", 0.02)], benchmark="toss", model="other", units="xyz")
    rows = build_sections(board_of(tmp_path))[0].blocks[0].rows
    assert [(row[0], row[1]) for row in rows[:2]] == [(1, "mine"), (None, "other")]
    assert {row[2] for row in rows[2:]} == {"published"}


def test_names_from_folders_cannot_run_as_scripts(toss):
    page = render_study(build_sections(toss), title="Board")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_table_has_every_score_and_slice_and_all_that_is_published(toss):
    frame = build_frame([toss])
    assert tuple(frame.columns) == COLUMNS
    runs = frame.filter(pl.col("kind") == "run")
    assert len(runs) == 2 * 4
    [fold] = runs.filter((pl.col("method") == "mine") & (pl.col("slice") == "fold: 0")).to_dicts()
    assert (fold["score"], fold["value"], fold["low"], fold["n"], fold["folder"], fold["date"]) == (
        "lca", 0.5, 0.49, 20, "a", "2030-01-02",
    )  # fmt: skip
    assert runs.filter(pl.col("score") == "hca")["value"].null_count() == 2
    printed = frame.filter(pl.col("kind") == "published")
    assert len(printed) == sum(len(row.values) for row in toss.card.published())
    hsnet = printed.filter((pl.col("method") == "HSNet") & (pl.col("score") == "gs") & (pl.col("slice") == ""))
    assert hsnet["value"].to_list() == [0.8747]


def test_many_runs_are_cut_on_the_page_and_whole_in_the_table(tmp_path):
    for index in range(MAX_ROWS + 1):
        write_run(tmp_path / f"{index:03}", [score("miou", index / 1000)], model=f"m{index}")
    board = board_of(tmp_path)
    chart, table = next(section for section in build_sections(board) if section.title == "mIoU").blocks
    assert (len(chart.rows), len(table.rows)) == (MAX_DOTS, MAX_ROWS)
    assert "leaderboard.parquet has all" in table.caption
    assert table.rows[0][1] == f"m{MAX_ROWS}"
    assert build_frame([board]).height == MAX_ROWS + 1


@pytest.mark.parametrize("name", [*BUILT_IN, *STUDIES])
def test_a_page_shows_every_printed_digit(name):
    for table in find_benchmark(name).card.published_tables():
        block = make_published_block(table)
        for printed, shown in zip(table.rows, block.rows, strict=True):
            for before, after in zip(printed, shown, strict=True):
                if isinstance(after, float):
                    assert float(f"{after:.{block.decimals}f}") == before
                elif isinstance(before, float):
                    assert float(after) == before
                else:
                    assert after == before
