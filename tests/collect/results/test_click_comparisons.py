from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from hardlook.collect.results.click_comparisons import compare_devices, compare_modes, comparison_document
from hardlook.collect.study.pictures import read_mask
from hardlook.metrics.click_distances import pairwise_l1, wasserstein
from hardlook.metrics.click_ks import fasano_franceschini


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
    told = comparison_document(found)["text"]
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
    assert comparison_document(compare_devices(gathered.study, clicks.clear()))["text"]["ks"] is None
