import pytest
from two_vocabularies import spoken_records

from hardlook.harness.registry import find_benchmark

BENCHMARK = find_benchmark("open-pq")

OPTIONS = BENCHMARK.options(resamples=0, compare=())


@pytest.fixture(scope="module")
def records():
    return spoken_records("open-pq", 6)


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
         "0 of 1 segments are found by name, 1 is missed, 1 is predicted where there is none."),
        ([-1, -1], [0, 1], [0, 0], "There is no true segment; 2 are predicted."),
    ],
)  # fmt: skip
def test_captions_in_words(true, called, excused, caption):
    assert BENCHMARK.caption({"names": "cat\ndog\nsky", "true": true, "called": called, "excused": excused}) == caption


def test_the_gallery_of_confusions_says_how_alike_the_labels_are(records):
    card = BENCHMARK.score(records, OPTIONS)
    (gallery,) = [block for section in BENCHMARK.report(records, card) for block in section.blocks
                  if type(block).__name__ == "Gallery"]  # fmt: skip
    true, called = gallery.examples[0].caption.split(" (")[0].split(" called ")
    hard, soft = (card.get(f"{kind}-segments", true=true, called=called).value for kind in ("misnamed", "unforgiven"))
    assert f"(similarity {1 - soft / hard:.2f})" in gallery.examples[0].caption
