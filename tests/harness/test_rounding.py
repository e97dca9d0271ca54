"""One number, one rounding: sums that decide a digit are exact, and every page rounds by the same function."""

import math
import re
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hardlook
from hardlook.api.inline import draw_inline_table
from hardlook.harness.rounding import format_fixed, format_percent
from hardlook.harness.stats import Estimate, Interval, bootstrap_mean, ratio, t_interval
from hardlook.harness.tally import Entry, SumTally
from hardlook.report.estimates import format_estimate
from hardlook.report.formatting import format_interval, format_number

HALVES = [0.8725, 0.8735, 0.0005, 0.5005, 2.6745, 61.0625, -0.0335]


@pytest.mark.parametrize("half", HALVES)
def test_a_half_goes_to_the_even_digit_whatever_its_last_bits_are(half):
    expected = str(Decimal(repr(half)).quantize(Decimal("0.001"), ROUND_HALF_EVEN))
    for value in (half, math.nextafter(half, 9), math.nextafter(half, -9), half * (1 + 1e-14), half * (1 - 1e-14)):
        assert format_fixed(value, 3) == expected
        assert format_number(value, 3).replace("\N{MINUS SIGN}", "-") == expected


@pytest.mark.parametrize("half", HALVES[:4])
def test_notebooks_and_reports_of_studies_round_as_pages_do(half):
    text = format_fixed(half, 3)
    assert f">{text}</td>" in draw_inline_table(["value"], [[half]])
    interval = Interval(half, half, 0.95, "jackknife", 20, "image")
    assert format_estimate(Estimate(half, interval, 0.1, 100, 0), 3) == f"{text} ({text} to {text})"


def test_what_is_beyond_rounding_errors_decides():
    assert format_fixed(0.8725 + 1e-9, 3) == "0.873"
    assert format_fixed(0.8725 - 1e-9, 3) == "0.872"


@given(st.floats(-1e6, 1e6).filter(lambda value: abs(value * 1e3 % 1 - 0.5) > 1e-6), st.integers(0, 6))
def test_elsewhere_it_is_the_usual_rounding(value, decimals):
    # Python's own, of the value with 13 digits.
    assert format_fixed(value, decimals) == f"{Decimal(f'{value:.13g}'):.{decimals}f}"


def test_marks_and_what_is_no_number():
    assert (format_fixed(1234.5, 1, group=True), format_fixed(0.25, 2, sign=True)) == ("1,234.5", "+0.25")
    assert format_fixed(math.nan, 3) == "nan"
    assert format_interval(0.0625, 0.1875, 3) == "0.062 to 0.188"


def shares():
    """Accuracies of tasks of 75 queries, whose mean is .8725 but for the order in which floats are added."""
    rng = np.random.default_rng(0)
    right = rng.integers(56, 75, size=399)
    right = np.append(right, 26_175 - right.sum())
    return right / 75


def test_the_mean_of_a_report_and_of_a_comparison_is_the_same_number():
    values = shares()
    ones = np.ones(len(values))
    means = set()
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(values))
        sums = np.stack([values[order], ones], axis=1)
        means.add(float(SumTally((Entry("a", 400),), sums, ratio, ("k",), "task").values()[0, 0]))
        means.add(bootstrap_mean(values[order], rng=np.random.default_rng(0), resamples=0).value)
        interval = t_interval(values[order])
        assert (interval.low + interval.high) / 2 == pytest.approx(0.8725, abs=1e-15)
    # numpy's own sums differ with the order, and so did the third digit of this mean.
    assert len({float(values[np.random.default_rng(seed).permutation(400)].mean()) for seed in range(20)}) > 1
    assert means == {math.fsum(values) / 400}
    assert {format_number(mean) for mean in means} == {"0.872"}


def test_swapping_nothing_gives_the_same_number_to_the_last_bit():
    rng = np.random.default_rng(1)
    ours, theirs = (SumTally((Entry("a", 50),), rng.random((50, 2)), ratio, ("k",), "task") for _ in range(2))
    assert ours.mixed(theirs, np.zeros((1, 50)))[0, 0] == ours.values()[0, 0]


@given(st.integers(0, 1000), st.integers(1, 1000), st.integers(0, 2))
def test_a_percent_is_the_exact_quotient_rounded(part, whole, decimals):
    """Neither the last bits of the share nor those of 100 times it decide a digit."""
    exact = (Decimal(100 * part) / Decimal(whole)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)
    assert format_percent(part / whole, decimals) == f"{exact} %"
    assert format_percent(part / whole, decimals, gap="") == f"{exact}%"


# Errors of packages below this one are not results.
OTHER_PERCENTS = {
    "world/signature.py": 1,
    "models/conformance/contracts.py": 1,
}


def test_no_page_rounds_a_share_on_its_own():
    source = Path(hardlook.__file__).parent
    found = {}
    for path in source.rglob("*.py"):
        if count := len(re.findall(r"\{[^{}]*:\.\d%\}|\{100 \* [^{}]*:\.\df\}", path.read_text(encoding="utf-8"))):
            found[path.relative_to(source).as_posix()] = count
    assert found == OTHER_PERCENTS
