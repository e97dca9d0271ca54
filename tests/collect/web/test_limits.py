"""Limits by a clock that is turned by hand, against a literal count; the memory stays bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.web.limits import Buckets, address_key, asking_address


@given(st.lists(st.floats(0, 5), max_size=60), st.integers(1, 20))
def test_no_window_holds_more_than_a_bucket_and_its_inflow(pauses, rate):
    buckets, now, granted = Buckets(rate), 0.0, []
    for pause in pauses:
        now += pause
        if not buckets.take("a", now):
            granted.append(now)
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            assert last - first + 1 <= rate + (granted[last] - granted[first]) * rate / 60 + 1e-6


@given(st.integers(1, 20), st.integers(0, 60))
def test_the_wait_that_is_told_is_enough_and_not_too_long(rate, asked):
    buckets = Buckets(rate)
    for _ in range(asked):
        buckets.take("a", 0.0)
    wait = buckets.take("a", 0.0)
    assert (wait > 0) == (asked >= rate)
    if wait:
        assert buckets.take("a", wait * 0.99) > 0
        assert buckets.take("a", wait * 1.000001) == 0


def test_keys_do_not_share_and_a_clock_set_back_takes_nothing():
    buckets = Buckets(1)
    assert buckets.take("a", 100.0) == 0 and buckets.take("b", 100.0) == 0
    assert buckets.take("a", 50.0) == pytest.approx(60.0)
    assert buckets.take("a", 110.0) == 0


def test_something_that_costs_more_than_a_bucket_costs_a_bucket():
    buckets = Buckets(2)
    assert buckets.take("a", 0.0, tokens=10) == 0
    assert buckets.take("a", 0.0) == pytest.approx(30.0)


def test_memory_is_bounded_and_the_latest_stay():
    buckets = Buckets(1, most_keys=100)
    for number in range(10_000):
        buckets.take(str(number), 0.0)
    assert len(buckets) == 100
    assert buckets.take("9999", 0.0) > 0


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_that_cannot_be(rate):
    with pytest.raises(ValueError, match="positive rate"):
        Buckets(rate)


def test_a_household_is_one_address():
    assert address_key("2001:db8:1:2::1") == address_key("2001:db8:1:2:ffff::9") != address_key("2001:db8:1:3::1")
    assert address_key("fe80::1%eth0") == address_key("fe80::2")


@pytest.mark.parametrize(
    ("peer", "headers", "proxy", "expected"),
    [
        ("1.1.1.1", ["9.9.9.9"], "", "1.1.1.1"),
        ("1.1.1.1", ["9.9.9.9"], "2.2.2.2", "1.1.1.1"),
        ("2.2.2.2", [], "2.2.2.2", "2.2.2.2"),
        ("2.2.2.2", [""], "2.2.2.2", "2.2.2.2"),
        ("2.2.2.2", ["forged", "9.9.9.9"], "2.2.2.2", "9.9.9.9"),
        ("2.2.2.2", ["forged, 9.9.9.9"], "2.2.2.2", "9.9.9.9"),
    ],
)
def test_only_the_trusted_proxys_own_word_counts(peer, headers, proxy, expected):
    assert asking_address(peer, headers, proxy) == expected


def test_a_participant_is_limited_and_told_when_to_come_back(hall_of, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_participant": 5})
    hall = hall_of(clicks_study, limits=limits)
    visitor, other = hall.visitor(), hall.visitor()
    visitor.join(), other.join()
    statuses = [visitor.get("/api/state").status for _ in range(6)]
    assert statuses == [200] * 4 + [429] * 2
    refused = visitor.get("/api/state")
    assert refused.error == "too-many" and int(refused.headers["retry-after"]) == 12
    assert other.get("/api/state").status == 200
    hall.now += 12
    assert visitor.get("/api/state").status == 200


def test_an_address_is_limited_whatever_it_asks(hall_of, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_address": 3})
    hall = hall_of(clicks_study, limits=limits)
    here, there = hall.visitor(), hall.visitor(client="10.1.1.1")
    assert [here.get(path).status for path in ("/privacy", "/nowhere", "/privacy", "/privacy")] == [200, 404, 200, 429]
    # What it says of itself changes nothing, since no proxy is trusted here.
    assert here.get("/privacy", headers=[("x-forwarded-for", "8.8.8.8")]).status == 429
    assert there.get("/privacy").status == 200


def test_a_trusted_proxys_visitors_are_counted_apart(hall_of, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_address": 1})
    hall = hall_of(clicks_study, limits=limits, public_url="https://study.example", trusted_proxy="127.0.0.1")
    visitor = hall.visitor(host="study.example")
    for name, status in (("8.8.8.8", 200), ("8.8.8.8", 429), ("8.8.4.4", 200)):
        assert visitor.get("/privacy", headers=[("x-forwarded-for", name)]).status == status


def test_joining_costs_more_than_reading(hall_of, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"per_address": 60})
    hall = hall_of(clicks_study, limits=limits)
    statuses = [hall.visitor().join().status for _ in range(5)]
    # Three requests each (page, form, state) and ten for the new participant.
    assert statuses == [303] * 4 + [429]
    assert hall.store.participants().height == 4
