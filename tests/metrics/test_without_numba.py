import sys

import numpy as np
import pytest

from hardlook.metrics import click_sets, confusion, panoptic, regions
from hardlook.metrics.kernels import load_kernels

MASK = np.ones((5, 5), bool)
LABELS = np.array([[1, 1, 2]])
POINTS = np.array([[1.0, 1.0], [2.0, 3.0], [4.0, 2.0]])


@pytest.mark.parametrize("name", ["click_ks", "confusion", "distances", "segment_overlaps"])
def test_there_are_no_kernels_where_numba_is_absent(monkeypatch, name):
    assert load_kernels(name) is not None
    monkeypatch.setitem(sys.modules, "numba", None)
    for module in ("compiled", name):
        monkeypatch.delitem(sys.modules, f"hardlook.metrics.kernels.{module}", raising=False)
    assert load_kernels.__wrapped__(name) is None


@pytest.mark.parametrize(
    ("module", "plain", "call"),
    [
        (click_sets, "quadrant_gaps_numpy", lambda: click_sets.fasano_franceschini(POINTS, POINTS[::-1] + 1)),
        (confusion, "count_pairs_numpy", lambda: confusion.confusion_counts(LABELS, LABELS, classes=3).tolist()),
        (panoptic, "count_overlaps_numpy", lambda: panoptic.segment_overlaps(LABELS, LABELS, *[LABELS[0, 1:]] * 2)[1]),
        (regions, "_by_scipy", lambda: regions.find_innermost_pixel(MASK)),
    ],
)
def test_the_plain_version_counts_where_there_are_no_kernels(monkeypatch, module, plain, call):
    compiled, calls, used = call(), [], getattr(module, plain)
    monkeypatch.setattr(module, plain, lambda *given: calls.append(plain) or used(*given))
    assert str(call()) == str(compiled)
    assert not calls
    monkeypatch.setattr(module, "load_kernels", lambda name: None)
    assert str(call()) == str(compiled)
    assert calls == [plain]
