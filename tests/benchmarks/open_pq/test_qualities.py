"""Single images judged as runs of one image are scored; captions; words of two models."""

import polars as pl
import pytest
from two_vocabularies import spoken_records

from hardlook.benchmarks import find_benchmark
from hardlook.benchmarks.open_pq import qualities
from hardlook.errors import DataError

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
    monkeypatch.setattr(qualities, "MOST_SUMS", 50)
    assert BENCHMARK.qualities(records, OPTIONS).equals(judged)
    assert BENCHMARK.qualities(records[2:4], OPTIONS).equals(judged[2:4])


def test_captions_count_what_the_record_holds(records):
    for record in records.iter_rows(named=True):
        pairs = list(zip(record["true"], record["called"], strict=True))
        named, segments = sum(t == c for t, c in pairs), sum(t >= 0 for t, _ in pairs)
        misnamed = [(t, c) for t, c in pairs if t >= 0 and c >= 0 and t != c]
        caption = BENCHMARK.caption(record)
        assert caption.startswith(f"{named} of {segments} segments are found by name")
        assert (f"{len(misnamed)} by another" in caption) == bool(misnamed)
        assert ("missed" in caption) == any(c < 0 for _, c in pairs)


@pytest.mark.parametrize(
    ("true", "called", "excused", "caption"),
    [
        ([0, 0, 0], [1, 1, 2], [0, 0, 0],
         "0 of 3 segments are found by name, 3 by another (most: cat called dog, 2 times)."),
        ([0, -1, -1], [-1, 1, 1], [0, 1, 2],
         "0 of 1 segments are found by name, 1 is missed, 1 is said where there is none."),
        ([-1, -1], [0, 1], [0, 0], "No segment is true; 2 are said."),
    ],
)  # fmt: skip
def test_captions_in_words(true, called, excused, caption):
    assert BENCHMARK.caption({"names": "cat\ndog\nsky", "true": true, "called": called, "excused": excused}) == caption


def test_a_word_that_is_a_thing_to_one_model_and_stuff_to_another_is_refused(records):
    renamed = spoken_records("open-pq", 2, {"cat": "cow"})
    kinds = renamed["things"][0].to_list()
    stuff = renamed.with_columns(things=pl.lit([*kinds[:-1], 1 - kinds[-1]], pl.List(pl.Int64)))
    longer = spoken_records("open-pq", 2, {"cat": "cow", "sky": "boat"})
    with pytest.raises(DataError, match="'cow' is a thing in one run and stuff in another"):
        BENCHMARK.in_one_vocabulary([longer, stuff])


def test_the_gallery_of_confusions_says_how_alike_the_labels_are(records):
    card = BENCHMARK.score(records, OPTIONS)
    (gallery,) = [block for section in BENCHMARK.sections(records, card) for block in section.blocks
                  if type(block).__name__ == "Gallery"]  # fmt: skip
    true, called = gallery.examples[0].caption.split(" (")[0].split(" called ")
    hard, soft = (card.get(f"{kind}-segments", true=true, called=called).value for kind in ("misnamed", "unforgiven"))
    assert f"(similarity {1 - soft / hard:.2f})" in gallery.examples[0].caption
