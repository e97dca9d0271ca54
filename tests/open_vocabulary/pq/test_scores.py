"""Single images are scored as runs of one image."""

import polars as pl
import pytest
from two_vocabularies import spoken_records

from hardlook.harness.registry import find_benchmark
from hardlook.open_vocabulary.pq import scores

BENCHMARK = find_benchmark("open-pq")

OPTIONS = BENCHMARK.options(resamples=0, compare=())


@pytest.fixture(scope="module")
def records():
    return spoken_records("open-pq", 6)


def test_an_image_is_judged_by_its_own_score(records, monkeypatch):
    judged = BENCHMARK.qualities(records, OPTIONS)
    assert judged.columns == ["unit", *(quality.name for quality in BENCHMARK.card.qualities)]
    for row in judged.iter_rows(named=True):
        card = BENCHMARK.score(records.filter(pl.col("unit") == row["unit"]), OPTIONS)
        assert (row["image-open-pq"], row["image-pq"]) == pytest.approx(
            (card.get("open-pq").value, card.get("pq").value)
        )
    monkeypatch.setattr(scores, "MAX_SUMS", 50)
    assert BENCHMARK.qualities(records, OPTIONS).equals(judged)
    assert BENCHMARK.qualities(records[2:4], OPTIONS).equals(judged[2:4])
