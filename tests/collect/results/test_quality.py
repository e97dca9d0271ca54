import statistics

import polars as pl
import pytest

from hardlook.collect.results.quality import measure_images, measure_lateness, measure_participants
from hardlook.errors import DataError


@pytest.fixture(scope="module")
def quality(gathered):
    store = gathered.store
    frame = measure_participants(gathered.study, store.answers(), store.batches(), store.participants())
    return {row["participant"]: row for row in frame.iter_rows(named=True)}


def test_participants_go_by_the_order_of_joining(gathered, quality):
    assert [quality[one]["number"] for one in gathered.ids.values()] == list(range(1, len(gathered.ids) + 1))


def test_every_number_is_that_of_a_recount(gathered, quality, recounted):
    plan = {"image": 1500.0, "again": 1500.0}
    for who in gathered.ids.values():
        own = [row for row in recounted if row["participant"] == who]
        found = quality[who]
        assert found["answers"] == len(own)
        if not own:
            assert found["inside"] is found["reaction_ms"] is found["late_ms"] is None
            continue
        assert found["inside"] == pytest.approx(statistics.mean(row["inside"] for row in own))
        assert found["near"] == pytest.approx(statistics.mean(row["near"] for row in own))
        assert found["reaction_ms"] == pytest.approx(statistics.median(row["reaction_ms"] for row in own))
        assert found["early"] == sum(row["early"] for row in own)
        assert found["early_share"] == pytest.approx(statistics.mean(row["early"] > 0 for row in own))
        late = [
            abs(row["durations"][phase] - (plan | {"target": 2500.0 if row["mode"] == "text" else 2000.0})[phase])
            for row in own
            for phase in ("image", "target", "again")
        ]
        assert found["late_ms"] == pytest.approx(statistics.median(late))
        batches = {row["batch"]["id"]: row for row in own}.values()
        assert found["batches"] == len(batches)
        assert found["valid_batches"] == sum(row["batch_valid"] for row in batches)
        complete = [row for row in batches if row["batch"]["state"] == "complete"]
        assert found["dropped_batches"] == sum(not row["batch_valid"] for row in complete)
        assert found["given_up_batches"] == sum(row["batch"]["state"] == "returned" for row in batches)
        assert found["open_batches"] == sum(row["batch"]["state"] == "open" for row in batches)
        assert found["hidden"] == len(own)


def test_the_planted_faults_are_found(gathered, quality):
    names = ("careless", "slow", "left", "working")
    careless, slow, left, working = (quality[gathered.ids[name]] for name in names)
    assert careless["inside"] == 0 and careless["dropped_batches"] == 1 and careless["early"] == 8
    assert careless["reshown"] == 4 and slow["reshown"] == 0
    assert slow["late_ms"] == 90 and slow["dropped_batches"] == 0
    # A mouse on a phone contradicts the device; a pen does not.
    assert slow["pointer_conflicts"] == slow["answers"] and slow["pointer_conflict_share"] == 1
    assert sum(one["pointer_conflicts"] for one in quality.values()) == slow["answers"]
    # They stayed away until the batch went back.
    assert (left["answers"], left["given_up_batches"], left["valid_batches"]) == (2, 1, 0)
    assert (working["answers"], working["open_batches"], working["valid_batches"]) == (3, 1, 0)


def test_lateness_is_measured_against_the_mode_shown(gathered):
    late = measure_lateness(gathered.study, gathered.store.answers())
    assert late.height == 3 * gathered.store.answers().height
    assert set(late["late_ms"].round(6)) == {4.0, 90.0}


def test_phases_that_were_not_measured_are_not_late(gathered):
    store = gathered.store
    silent = store.answers().with_columns(durations=pl.lit("{}"), circumstances=pl.lit("{}"))
    frame = measure_participants(gathered.study, silent, store.batches(), store.participants())
    assert frame["late_ms"].null_count() == frame.height and frame["hidden"].sum() == 0


def test_broken_json_is_an_error(gathered):
    broken = gathered.store.answers().with_columns(durations=pl.lit("{"))
    with pytest.raises(DataError, match="durations of an answer are not JSON"):
        measure_lateness(gathered.study, broken)


def test_images_are_counted_by_device(gathered, recounted):
    found = measure_images(gathered.study, gathered.store.answers())
    assert found.height == len(gathered.study.items)
    for row in found.iter_rows(named=True):
        here = [one for one in recounted if one["task"].id == row["task"] and one["mode"] == row["mode"]]
        for device in ("pc", "mobile"):
            own = [one for one in here if one["device"] == device]
            assert row[device] == len(own)
            assert row[f"valid_{device}"] == sum(one["near"] and one["batch_valid"] for one in own)
        assert row["inside"] == pytest.approx(statistics.mean(one["inside"] for one in here))


def test_images_without_an_answer_are_counted_with_zeros(gathered):
    answers = gathered.store.answers()
    one = answers.filter(pl.col("item") == answers["item"][0])
    table = measure_images(gathered.study, one)
    assert table.height == measure_images(gathered.study, answers).height == 8
    without = table.filter(pl.col("item") != answers["item"][0])
    assert without.height == 7
    assert without.select("pc", "mobile", "valid_pc", "valid_mobile").unique().rows() == [(0, 0, 0, 0)]
    assert without["inside"].null_count() == without["reaction_ms"].null_count() == 7


def test_one_early_click_or_one_second_showing_is_enough_to_count(gathered):
    store = gathered.store
    answers = store.answers().sort("key")
    who = answers["participant"][0]
    own = answers.filter(pl.col("participant") == who).head(1)
    five = pl.concat([own] * 5).with_columns(
        pl.Series("early", [0, 1, 2, 0, 3], own.schema["early"]),
        pl.Series("shows", [0, 1, 2, 3, 1], own.schema["shows"]),
    )
    [row] = [
        row
        for row in measure_participants(gathered.study, five, store.batches(), store.participants()).to_dicts()
        if row["participant"] == who
    ]
    assert (row["answers"], row["early"], row["early_share"], row["reshown"]) == (5, 6, 0.6, 2)
