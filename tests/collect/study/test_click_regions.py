"""Regions to click on are checked when they are made."""

import numpy as np
import pytest

from hardlook.collect.study.click_regions import ClickRegion
from hardlook.errors import DataError


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": np.zeros((4, 4), np.uint8)}, "expected an image"),
        ({"image": np.zeros((4, 4, 3), float)}, "expected an image"),
        ({"region": np.zeros((4, 4), bool)}, "nothing to click on"),
        ({"region": np.ones((4, 5), bool)}, "expected a region mask"),
        ({"target": np.ones((4, 4), np.uint8)}, "expected a target mask"),
        ({"previous": np.ones((5, 4), bool)}, "expected a previous mask"),
        ({"click_type": "second"}, "a click of type 'second'"),
    ],
)
def test_regions_that_cannot_be(change, words):
    mask = np.ones((4, 4), bool)
    right = {"image": np.zeros((4, 4, 3), np.uint8), "target": mask, "region": mask}
    with pytest.raises(DataError, match=words):
        ClickRegion("d", "a", "", "a", subject="d/a", **{**right, **change})
