"""Single images are scored as runs of one image."""

from dataclasses import replace

import polars as pl
import pytest
from two_vocabularies import spoken_records

from hardlook.harness.registry import find_benchmark
from hardlook.open_vocabulary.label_similarity import compute_label_similarity
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


def test_only_confusions_are_better_when_low_and_no_model_is_ranked_by_what_is_given_back():
    meanings = BENCHMARK.card.scores
    assert {one.name for one in meanings if not one.higher_is_better} == {"misnamed-segments", "unforgiven-segments"}
    assert [one.name for one in meanings if not one.ranked] == ["open-gain"]
    assert [one.name for one in meanings if one.headline] == ["open-pq", "pq", "open-gain"]


def test_similarity_forgives_a_part_of_each_confusion(records):
    card = BENCHMARK.score(records, OPTIONS)
    costs = {name: {tuple(one.slice.values()): one.value for one in card.scores if one.name == name}
             for name in ("misnamed-segments", "unforgiven-segments")}  # fmt: skip
    misnamed, unforgiven = costs.values()
    assert misnamed and misnamed.keys() == unforgiven.keys()
    for (true, called), count in misnamed.items():
        alike = compute_label_similarity((true, called), OPTIONS).matrix[0, 1]
        assert true != called and count == int(count) >= 1
        assert unforgiven[true, called] == pytest.approx(count * (1 - alike))
    # The most costly come first.
    assert list(unforgiven.values()) == sorted(unforgiven.values(), reverse=True)


def test_where_no_segment_is_true_or_predicted_the_scores_say_so(records):
    lists = ("true", "called", "intersection", "union", "excused")
    empty = records.with_columns(pl.lit([], records.schema[name]).alias(name) for name in lists)
    for frame, reason in ((records, ""), (empty, scores.NOTHING)):
        card = BENCHMARK.score(frame, OPTIONS)
        found = {(one.name, *one.slice.values()): one for one in card.scores}
        assert {found[(name,)].reason for name in ("open-pq", "pq", "open-gain")} == {reason}
        assert {one.reason for one in card.scores if "kind" in one.slice} <= {""}


def test_the_25_most_costly_confusions_are_listed():
    words = ("cat", "dog", "car", "bus", "horse", "sofa")
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    rows = [
        {
            "unit": f"image-{place:02}", "context": "", "truth": "", "names": "\n".join(words), "things": [1] * 6,
            "true": [a], "called": [b], "intersection": [9], "union": [10], "excused": [0],
        }
        for place, (a, b) in enumerate(pairs)
    ]  # fmt: skip
    schema = replace(BENCHMARK.schema, columns=BENCHMARK.schema.columns[:-1])
    card = BENCHMARK.score(schema.frame(rows), OPTIONS)
    alike = compute_label_similarity(words, OPTIONS).matrix
    costs = sorted((1 - alike[a, b] for a, b in pairs), reverse=True)
    assert [one.value for one in card.scores if one.name == "unforgiven-segments"] == pytest.approx(costs[:25])
    assert [one.value for one in card.scores if one.name == "misnamed-segments"] == [1] * 25
