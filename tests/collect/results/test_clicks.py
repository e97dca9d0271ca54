import math
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from hardlook.collect.results.clicks import (
    build_click_table,
    build_preview_table,
    collect_clicks,
    compare_devices,
    compare_modes,
    list_all_clicks,
    summarise_comparisons,
    write_pixel_clicks,
)
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.validity import ClickValidator
from hardlook.data.click_file import read_clicks
from hardlook.errors import DataError, OptionError
from hardlook.metrics.click_sets import fasano_franceschini, pairwise_l1, wasserstein


@pytest.fixture
def clicks(gathered):
    """Hand-made clicks on two tasks: mobile is PC moved by five pixels on the first, and the same on the second."""
    rng = np.random.default_rng(1)
    rows = []
    for place, task in enumerate(gathered.study.tasks[:2]):
        points = rng.uniform(10, 40, (12, 2))
        for mode in ("text", "cut-out"):
            moved = (5 if place == 0 else 0) + (20 if mode == "cut-out" else 0)
            rows += [(task.id, mode, "pc", x, y) for x, y in points]
            rows += [(task.id, mode, "mobile", x + moved, y) for x, y in points]
    rows += [(gathered.study.tasks[2].id, "text", "pc", 3.5, 4.5)] * 9
    return pl.DataFrame(rows, ["task", "mode", "device", "x", "y"], orient="row")


def box(study, task):
    ys, xs = np.nonzero(read_mask(study.file(study.by_id[task].mask)))
    return np.ptp(xs) + 1, np.ptp(ys) + 1


def points(clicks, **chosen):
    found = clicks.filter(*(pl.col(name) == value for name, value in chosen.items()))
    return np.floor(found.select("x", "y").to_numpy())


def test_devices_are_compared_on_pixels_relative_to_the_objects_box(gathered, clicks):
    found = compare_devices(gathered.study, clicks)
    assert list(found) == ["text", "cut-out"]
    assert [len(one.rows) for one in found.values()] == [2, 2] and found["text"].too_few == 1
    for mode, comparison in found.items():
        for row, task in zip(comparison.rows, gathered.study.tasks, strict=False):
            ours, others = (points(clicks, task=task.id, mode=mode, device=device) for device in ("pc", "mobile"))
            assert row.full_stem == task.full_stem and (row.clicks, row.other_clicks) == (12, 12)
            assert row.p == fasano_franceschini(ours, others).p
            assert row.pl1 == pairwise_l1(ours, others, box(gathered.study, task.id))
            assert row.wd == wasserstein(ours, others, box(gathered.study, task.id))
    same, apart = found["text"].rows[1], found["cut-out"].rows[0]
    assert same.ks and same.wd == 0 and not apart.ks and apart.wd > 0


def test_modes_are_compared_with_text_devices_together(gathered, clicks):
    found = compare_modes(gathered.study, clicks)
    assert list(found) == ["cut-out"] and found["cut-out"].too_few == 0
    for row, task in zip(found["cut-out"].rows, gathered.study.tasks, strict=False):
        ours, words = (points(clicks, task=task.id, mode=mode) for mode in ("cut-out", "text"))
        assert (row.clicks, row.other_clicks) == (24, 24)
        assert row.wd == wasserstein(ours, words, box(gathered.study, task.id))


def test_wd_has_two_readings(gathered, clicks):
    """Equal shapes moved sideways: the distance over the box's diagonal, or over its width."""
    for reading, side in (("released", np.hypot), ("paper", lambda width, height: width)):
        [row, *_] = compare_devices(gathered.study, clicks, reading)["text"].rows
        assert row.wd == pytest.approx(5 / side(*box(gathered.study, gathered.study.tasks[0].id)))
    by_axis = compare_modes(gathered.study, clicks, "paper")["cut-out"].rows[0]
    assert by_axis.wd > compare_modes(gathered.study, clicks)["cut-out"].rows[0].wd


def test_means_over_images(gathered, clicks):
    found = compare_devices(gathered.study, clicks)
    told = summarise_comparisons(found)["text"]
    rows = found["text"].rows
    assert told["stems"] == 2 and told["too_few"] == 1
    assert told["ks"]["value"] == np.mean([row.ks for row in rows])
    assert told["wd"]["value"] == pytest.approx(np.mean([row.wd for row in rows]))
    assert told["wd"]["low"] <= told["wd"]["value"] <= told["wd"]["high"]


def test_without_another_there_is_nothing_to_compare(gathered, clicks):
    settings = gathered.study.settings
    pc = replace(gathered.study, settings=settings.model_copy(update={"devices": ("pc",)}))
    assert compare_devices(pc, clicks) == {}
    wordless = replace(gathered.study, settings=settings.model_copy(update={"modes": ("cut-out", "shifted")}))
    assert compare_modes(wordless, clicks) == {}
    assert summarise_comparisons(compare_devices(gathered.study, clicks.clear()))["text"]["ks"] is None


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
    whole = build_click_table(gathered.study, answers, gone)
    assert counted(whole) == expected(recounted, lambda row: is_valid(row) and row["participant"] not in gone)
    text = build_click_table(gathered.study, answers, {}, mode="text")
    assert counted(text) == expected(recounted, lambda row: is_valid(row) and row["mode"] == "text")
    assert 0 < len(text) < len(whole) < answers.height


def test_all_clicks(gathered, recounted):
    answers, gone = gathered.store.answers(), {gathered.ids["slow"]: "named"}
    every = build_click_table(gathered.study, answers, gone, mode="cut-out", valid_only=False)
    wanted = expected(recounted, lambda row: row["mode"] == "cut-out" and row["participant"] not in gone)
    assert counted(every) == wanted
    assert len(build_click_table(gathered.study, answers, {}, valid_only=False)) == answers.height


def test_the_file_is_read_back_as_it_was_written(gathered, tmp_path):
    table = build_click_table(gathered.study, gathered.store.answers(), {})
    write_pixel_clicks(tmp_path / "clicks.csv", table)
    read = read_clicks(tmp_path / "clicks.csv")
    assert read.frame.equals(table.frame) and read.clipped == 0
    assert ".0," not in (tmp_path / "clicks.csv").read_text()


def test_the_order_of_rows_does_not_follow_the_order_of_answers(gathered):
    answers = gathered.store.answers()
    shuffled = answers.sample(fraction=1.0, shuffle=True, seed=3)
    assert build_click_table(gathered.study, shuffled, {}).frame.equals(
        build_click_table(gathered.study, answers, {}).frame
    )


def test_previews_have_the_mode_for_the_dataset(gathered, recounted):
    previews = build_preview_table(gathered.study, gathered.store.answers(), {})
    assert counted(previews.table) == expected(recounted, is_valid, dataset=lambda row: row["mode"])
    assert previews.table.datasets() == ("cut-out", "text") and previews.ambiguous_stems == ()


def test_stems_of_two_datasets_are_left_out_of_previews(gathered, recounted):
    first, second, *others = gathered.study.tasks
    # Berkeley and GrabCut share names of images.
    twin = replace(second, dataset="berkeley", image_stem=first.image_stem, full_stem=first.full_stem, width=99)
    study = replace(gathered.study, tasks=(first, twin, *others))
    previews = build_preview_table(study, gathered.store.answers(), {})
    hidden = sum(is_valid(row) and row["task"].id in (first.id, twin.id) for row in recounted)
    assert previews.ambiguous_stems == (first.full_stem,) and previews.left_out == hidden > 0
    assert first.full_stem not in set(previews.table.frame["full_stem"])


def test_a_display_mode_that_is_not_there_is_refused(gathered):
    with pytest.raises(OptionError, match="no display mode 'silhouette'"):
        collect_clicks(gathered.study, gathered.store, mode="silhouette")


def test_every_click_is_listed_once_and_without_ids(gathered, recounted):
    numbers = {one: place for place, one in enumerate(gathered.ids.values(), 1)}
    frame = list_all_clicks(gathered.study, gathered.store.answers(), {}, numbers)
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
    table = build_click_table(gathered.study, nothing, {})
    write_pixel_clicks(tmp_path / "clicks.csv", table)
    assert len(read_clicks(tmp_path / "clicks.csv")) == len(build_preview_table(gathered.study, nothing, {}).table) == 0
    assert list_all_clicks(gathered.study, nothing, {}, {}).height == 0


def test_a_region_without_a_pixel_is_named(gathered, clicks, monkeypatch):
    monkeypatch.setattr(ClickValidator, "mask", lambda self, name: np.zeros((4, 4), bool))
    with pytest.raises(DataError, match="the region to click is empty") as caught:
        compare_devices(gathered.study, clicks)
    assert caught.value.unit == gathered.study.tasks[0].id
