import math

import numpy as np

from hardlook.bias.estimate_words import document_of, dot, percent, said
from hardlook.bias.shares import share_of
from hardlook.stats import bootstrap_mean


def test_a_value_with_its_interval_in_words_and_as_json():
    share = share_of(5, 10)  # Wilson's interval of five in ten is .2366 to .7634
    assert said(share) == "0.50 (0.24 to 0.76)" and said(share, 3) == "0.500 (0.237 to 0.763)"
    assert percent(share) == "50 % (24 to 76)"
    document = document_of(share)
    assert document is not None and (document["value"], document["n"], document["resampled"]) == (0.5, 10, "image")
    row = dot("cat", share, "fold 0")
    assert (row.label, row.value, row.group) == ("cat", 0.5, "fold 0") and row.low == document["low"]


def test_what_is_not_there_is_null_and_undefined():
    nothing = share_of(0, 0)
    assert document_of(None) is None and document_of(nothing)["value"] is None
    assert said(nothing) == percent(nothing) == "undefined" and math.isnan(dot("cat", nothing).value)
    alone = bootstrap_mean([0.25], rng=np.random.default_rng(0))
    assert said(alone) == "0.25" and percent(alone) == "25 %" and dot("cat", alone).low is None
