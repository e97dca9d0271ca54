"""Single images are scored as runs of one image."""

import json

import numpy as np
import polars as pl
import pytest
from two_vocabularies import spoken_records

from hardlook.harness.registry import find_benchmark
from hardlook.open_vocabulary.miou import scores

BENCHMARK = find_benchmark("open-miou")

OPTIONS = BENCHMARK.options(resamples=0, compare=())


@pytest.fixture(scope="module")
def records():
    return spoken_records("open-miou", 6)


@pytest.fixture(scope="module")
def judged(records):
    return BENCHMARK.qualities(records, OPTIONS)


def test_an_image_is_judged_by_its_own_score(records, judged):
    options = OPTIONS.model_copy(update={"reading": {"mean-over": "gt-only"}})
    assert judged.columns == ["unit", *(quality.name for quality in BENCHMARK.card.qualities)]
    for row in judged.iter_rows(named=True):
        card = BENCHMARK.score(records.filter(pl.col("unit") == row["unit"]), options)
        assert row["image-open-miou"] == pytest.approx(card.get("open-miou").value)
        assert row["image-miou"] == pytest.approx(card.get("miou").value)
        assert row["image-gain"] == pytest.approx(card.get("open-gain").value)


def test_no_image_depends_on_the_others_or_on_the_size_of_parts(records, judged, monkeypatch):
    monkeypatch.setattr(scores, "MAX_COUNTS", 50)
    assert BENCHMARK.qualities(records, OPTIONS).equals(judged)
    assert BENCHMARK.qualities(records[2:4], OPTIONS).equals(judged[2:4])


def test_an_image_without_a_labelled_pixel_is_not_judged(records):
    empty = records.with_columns(cells=pl.lit([], pl.List(pl.Int64)), pixels=pl.lit([], pl.List(pl.Int64)))
    assert np.isnan(BENCHMARK.qualities(empty, OPTIONS)["image-open-miou"].to_numpy()).all()
    assert BENCHMARK.caption(empty.row(0, named=True)) == "No pixel is labelled."


@pytest.mark.parametrize("count", [1, 2, 3])
def test_two_class_sets_have_a_harmonic_mean_and_other_numbers_of_sets_have_none(records, tmp_path, count):
    sets = {"animals": ["cat", "dog"], "vehicles": ["car", "bus"], "ground": ["sky", "grass"]}
    (tmp_path / "sets.json").write_text(json.dumps(dict(list(sets.items())[:count])))
    card = BENCHMARK.score(records, OPTIONS.model_copy(update={"class_sets": tmp_path / "sets.json"}))
    for name in ("miou", "open-miou"):
        found = {one.slice["classes"]: one.value for one in card.scores if one.name == name and "classes" in one.slice}
        assert list(found) == [*list(sets)[:count], *(["harmonic mean"] if count == 2 else [])]
        if count == 2:
            expected = 2 / (1 / found["animals"] + 1 / found["vehicles"])
            assert found["harmonic mean"] == pytest.approx(expected)
