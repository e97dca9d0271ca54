import polars as pl
import pytest
from two_vocabularies import spoken_records

from hardlook.harness.registry import find_benchmark

BENCHMARK = find_benchmark("open-miou")

OPTIONS = BENCHMARK.options(resamples=0, compare=())


@pytest.fixture(scope="module")
def records():
    return spoken_records("open-miou", 6)


def test_the_gallery_of_confusions_says_how_alike_the_labels_are(records):
    card = BENCHMARK.score(records, OPTIONS)
    (gallery,) = [block for section in BENCHMARK.report(records, card) for block in section.blocks
                  if type(block).__name__ == "Gallery"]  # fmt: skip
    for example in gallery.examples:
        true, called = example.caption.split(" (")[0].split(" called ")
        hard, soft = (card.get(f"{kind}-pixels", true=true, called=called).value for kind in ("confused", "unforgiven"))
        assert f"(similarity {1 - soft / hard:.2f})" in example.caption
        own = BENCHMARK.score(records.filter(pl.col("unit") == example.unit), OPTIONS)
        pixels = own.get("confused-pixels", true=true, called=called).value
        assert f": {pixels:,.0f} pixels." in example.caption
