import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.contract.scorecard import LeftOut, Reading, Score, Scorecard, UnitCounts
from hardlook.errors import DataError
from hardlook.export.plain_values import json_text
from hardlook.export.score_rows import SCHEMA, score_row, scorecard_of
from hardlook.stats.intervals import Interval

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.just(math.nan)
counts = st.integers(0, 2**60)
words = st.text(max_size=8)
intervals = st.none() | st.builds(
    Interval,
    numbers,
    numbers,
    level=st.floats(0.01, 0.99),
    method=st.sampled_from(["percentile", "t"]),
    n=counts,
    resampled=words,
)
scores = st.builds(Score, words, numbers, counts, intervals, st.dictionaries(words, words, max_size=2), words, words)
cards = st.builds(
    Scorecard,
    words,
    words,
    words,
    st.lists(scores, max_size=4).map(tuple),
    st.lists(st.builds(Reading, words, words, words, st.lists(words, max_size=2).map(tuple), words)).map(tuple),
    st.lists(st.builds(LeftOut, words, counts, words, st.lists(words, max_size=2).map(tuple))).map(tuple),
    st.builds(UnitCounts, counts, counts, counts),
)


@given(cards)
def test_any_scorecard_comes_back_from_its_rows(card):
    stored = json.loads(card.to_json())
    document = {
        "schema": SCHEMA,
        "benchmark": {"name": card.benchmark, "version": card.version},
        "model": {"name": card.model},
        "scores": [score_row(score, "its title") for score in card.scores],
        **{key: stored[key] for key in ("readings", "left_out", "units")},
    }
    assert scorecard_of(json.loads(json_text(document))) == Scorecard.from_json(card.to_json())


def test_a_score_without_an_interval_has_its_keys_all_the_same():
    row = score_row(Score("gs", 0.25, 3), "GS")
    assert row["value"] == 0.25
    assert all(row[key] is None for key in ("low", "high", "level", "method", "resampled", "resampled_n"))


def test_a_document_of_another_schema_is_refused():
    with pytest.raises(DataError, match=r"expected a document of schema 'hardlook.export/1', got None"):
        scorecard_of({})
