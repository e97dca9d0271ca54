import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.scorecard import LeftOut, Reading, Score, Scorecard, UnitCounts, make_score
from hardlook.harness.stats.intervals import Estimate, Interval

numbers = st.floats(allow_nan=False, allow_infinity=False)

intervals = st.none() | st.builds(
    Interval, numbers, numbers, st.floats(0.5, 0.99), st.just("t"), st.integers(1, 99), st.just("image")
)

slices = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)

scores = st.builds(Score, st.text(min_size=1), numbers, st.integers(0), intervals, slices, st.text(), st.text())


@given(st.lists(scores, max_size=4))
def test_scores_json_reads_back_equal(found):
    card = Scorecard(
        "b", "1", "m", tuple(found), (Reading("r", "v", "m", ("v", "w"), "v"),), (LeftOut("x", 2, "y", ("z",)),),
        UnitCounts(3, 2, 1),
    )  # fmt: skip
    assert Scorecard.from_json(card.to_json()) == card


def test_undefined_values_are_null_in_the_file_and_nan_in_python():
    text = Scorecard("b", "1", "m", (Score("s", math.nan, 0),)).to_json()
    assert json.loads(text)["scores"][0]["value"] is None
    assert math.isnan(Scorecard.from_json(text).get("s").value)


def test_the_documented_keys():
    card = Scorecard("b", "1", "m", (Score("s", 0.5, 3, Interval(0.4, 0.6, 0.95, "bootstrap", 3, "image")),))
    document = json.loads(card.to_json())
    assert set(document) == {
        "checksum",
        "schema",
        "benchmark",
        "version",
        "model",
        "scores",
        "readings",
        "left_out",
        "units",
    }
    assert set(document["scores"][0]) == {"name", "value", "n", "interval", "slice", "reading", "comparable"}
    assert set(document["scores"][0]["interval"]) == {"low", "high", "level", "method", "n", "resampled"}


def test_get_by_name_and_slice_and_a_helpful_error():
    card = Scorecard("b", "1", "m", (Score("s", 1.0, 3), Score("s", 0.5, 1, slice={"class": "cat"})))
    assert card.get("s", **{"class": "cat"}).value == 0.5
    assert [score.value for score in card.headline] == [1.0]
    with pytest.raises(KeyError, match="there are: s, s"):
        card.get("t")


def test_another_schema_is_refused():
    with pytest.raises(ValueError, match=r"hardlook\.scores/1"):
        Scorecard.from_json('{"schema": "other/2"}')


def test_what_a_score_rests_on_and_its_undefined_resamples_are_stored_and_read_back():
    """SCS of one class: .664, 57 pairs, 70 % of the resamples undefined."""
    nothing = Interval(math.nan, math.nan, 0.95, "percentile", 9, "query image")
    score = make_score("scs", Estimate(0.664, nothing, 0.02, 1000, 700), 57, rests_on={"class": 1})
    assert (score.interval, score.undefined) == (None, 0.7)
    assert score.rests_on == {"query image": 9, "class": 1}
    plain = Score("miou", 0.5, 3)
    card = Scorecard("toss", "1", "m", (score, plain, Score("dsb", math.nan, 0, reason="not reached")))
    assert Scorecard.from_json(card.to_json()).scores[0] == score
    assert Scorecard.from_json(card.to_json()).scores[2].reason == "not reached"
    rows = json.loads(card.to_json())["scores"]
    assert rows[0]["undefined"] == 0.7 and rows[0]["rests_on"] == {"query image": 9, "class": 1}
    # Without anything to say the rows are those of 0.1.0.
    assert set(rows[1]) == {"name", "value", "n", "interval", "slice", "reading", "comparable"}


def test_left_out_holds_what_is_left_out_and_nothing_that_is_kept():
    left, kept = LeftOut("crowds", 3, "they do not count"), LeftOut("clicks", 2, "moved to the edge", kept=True)
    card = Scorecard("rclicks", "1", "m", left_out=(kept, left))
    assert (card.left_out, card.noted) == ((left,), (kept,))
    assert Scorecard.from_json(card.to_json()) == card
    document = json.loads(card.to_json())
    assert document["left_out"] == [{"what": "crowds", "count": 3, "why": "they do not count", "examples": []}]
    assert "noted" not in json.loads(Scorecard("rclicks", "1", "m", left_out=(left,)).to_json())
