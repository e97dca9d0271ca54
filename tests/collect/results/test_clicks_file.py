import math
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest

from hardlook.collect.results.clicks_file import clicks_table, every_click, previews_table, write_whole_numbers
from hardlook.data.click_file import read_clicks
from hardlook.errors import OptionError


def counted(table):
    names = ("dataset", "full_stem", "device", "x", "y", "w", "h")
    return Counter(table.frame.select(names).iter_rows())


def expected(recounted, wanted, dataset=lambda row: row["task"].dataset):
    return Counter(
        (
            dataset(row),
            row["task"].full_stem,
            row["device"],
            math.floor(row["x"]),
            math.floor(row["y"]),
            row["task"].width,
            row["task"].height,
        )
        for row in recounted
        if wanted(row)
    )


def is_valid(row):
    return row["near"] and row["batch_valid"]


def test_valid_clicks_of_those_who_are_not_excluded(gathered, recounted):
    answers, gone = gathered.store.answers(), {gathered.ids["slow"]: "named"}
    whole = clicks_table(gathered.study, answers, gone)
    assert counted(whole) == expected(recounted, lambda row: is_valid(row) and row["participant"] not in gone)
    text = clicks_table(gathered.study, answers, {}, mode="text")
    assert counted(text) == expected(recounted, lambda row: is_valid(row) and row["mode"] == "text")
    assert 0 < len(text) < len(whole) < answers.height


def test_all_clicks(gathered, recounted):
    answers, gone = gathered.store.answers(), {gathered.ids["slow"]: "named"}
    every = clicks_table(gathered.study, answers, gone, mode="cut-out", valid_only=False)
    wanted = expected(recounted, lambda row: row["mode"] == "cut-out" and row["participant"] not in gone)
    assert counted(every) == wanted
    assert len(clicks_table(gathered.study, answers, {}, valid_only=False)) == answers.height


def test_the_file_is_read_back_as_it_was_written(gathered, tmp_path):
    table = clicks_table(gathered.study, gathered.store.answers(), {})
    write_whole_numbers(tmp_path / "clicks.csv", table)
    read = read_clicks(tmp_path / "clicks.csv")
    assert read.frame.equals(table.frame) and read.clipped == 0
    assert ".0," not in (tmp_path / "clicks.csv").read_text()


def test_the_order_of_rows_does_not_follow_the_order_of_answers(gathered):
    answers = gathered.store.answers()
    shuffled = answers.sample(fraction=1.0, shuffle=True, seed=3)
    assert clicks_table(gathered.study, shuffled, {}).frame.equals(clicks_table(gathered.study, answers, {}).frame)


def test_previews_have_the_mode_for_the_dataset(gathered, recounted):
    previews = previews_table(gathered.study, gathered.store.answers(), {})
    assert counted(previews.table) == expected(recounted, is_valid, dataset=lambda row: row["mode"])
    assert previews.table.datasets() == ("cut-out", "text") and previews.twins == ()


def test_stems_of_two_datasets_are_left_out_of_previews(gathered, recounted):
    first, second, *others = gathered.study.tasks
    # Berkeley and GrabCut share names of images.
    twin = replace(second, dataset="berkeley", image_stem=first.image_stem, full_stem=first.full_stem, width=99)
    study = replace(gathered.study, tasks=(first, twin, *others))
    previews = previews_table(study, gathered.store.answers(), {})
    hidden = sum(is_valid(row) and row["task"].id in (first.id, twin.id) for row in recounted)
    assert previews.twins == (first.full_stem,) and previews.left_out == hidden > 0
    assert first.full_stem not in set(previews.table.frame["full_stem"])


def test_a_display_mode_that_is_not_there_is_refused(gathered):
    with pytest.raises(OptionError, match="no display mode 'silhouette'"):
        clicks_table(gathered.study, gathered.store.answers(), {}, mode="silhouette")


def test_every_click_is_there_once_and_nobody_is_known_by_id(gathered, recounted):
    numbers = {one: place for place, one in enumerate(gathered.ids.values(), 1)}
    frame = every_click(gathered.study, gathered.store.answers(), {}, numbers)
    exact = Counter(frame.select("participant", "x", "y", "mode", "reaction_ms", "target_ms").iter_rows())
    assert exact == Counter(
        (numbers[row["participant"]], row["x"], row["y"], row["mode"], row["reaction_ms"], row["durations"]["target"])
        for row in recounted
    )
    text = frame.write_csv()
    assert not any(one in text for one in gathered.ids.values())
    assert not any(row["key"] in text for row in recounted)
    assert frame["after_s"].min() == 0 and frame["after_s"].max() < 60


def test_empty_frames_give_empty_files(gathered, tmp_path):
    nothing = gathered.store.answers().clear()
    table = clicks_table(gathered.study, nothing, {})
    write_whole_numbers(tmp_path / "clicks.csv", table)
    assert len(read_clicks(tmp_path / "clicks.csv")) == len(previews_table(gathered.study, nothing, {}).table) == 0
    untyped = pl.DataFrame({name: [] for name in nothing.columns})
    assert every_click(gathered.study, untyped, {}, {}).height == 0
