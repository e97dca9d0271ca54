"""Estimates as JSON, chart dots and text, with undefined values and intervals."""

import math

import numpy as np

from hardlook.harness.stats import bootstrap_mean
from hardlook.report.estimates import estimate_to_json, format_estimate, format_share, make_estimate_dot
from hardlook.toss.bias.training_images import estimate_share


def test_a_value_with_its_interval_in_words_and_as_json():
    share = estimate_share(5, 10)  # Wilson's interval of five in ten is .2366 to .7634
    assert format_estimate(share) == "0.50 (0.24 to 0.76)" and format_estimate(share, 3) == "0.500 (0.237 to 0.763)"
    assert format_share(share) == "50 % (24 to 76)"
    document = estimate_to_json(share)
    assert document is not None and (document["value"], document["n"], document["resampled"]) == (0.5, 10, "image")
    row = make_estimate_dot("cat", share, "fold 0")
    assert (row.label, row.value, row.group) == ("cat", 0.5, "fold 0") and row.low == document["low"]


def test_what_is_not_there_is_null_and_undefined():
    nothing = estimate_share(0, 0)
    assert estimate_to_json(None) is None and estimate_to_json(nothing)["value"] is None
    assert format_estimate(nothing) == format_share(nothing) == "undefined" and math.isnan(
        make_estimate_dot("cat", nothing).value
    )
    alone = bootstrap_mean([0.25], rng=np.random.default_rng(0))
    assert (
        format_estimate(alone) == "0.25"
        and format_share(alone) == "25 %"
        and make_estimate_dot("cat", alone).low is None
    )
