"""Borders of saliency maps: blurred, crisp and blank."""

import cv2
import numpy as np
import pytest

from hardlook.toss.tiers.border_study import measure_border, summarise_borders


def test_a_blurred_border_is_wider_and_a_blank_map_has_none():
    crisp = np.zeros((512, 512), np.float32)
    crisp[128:384, 128:384] = 1
    widths = [measure_border(cv2.GaussianBlur(crisp, (0, 0), sigma)).width for sigma in (1, 2, 4, 8)]
    assert measure_border(crisp).width == 0 and widths == sorted(widths)
    # Of a straight edge blurred by sigma, .1 to .9 is 2 * 1.2816 sigma wide.
    assert widths[3] == pytest.approx(2 * 1.2816 * 8, rel=0.05)
    blank = measure_border(np.zeros((64, 64), np.float32))
    assert blank.undecided == 0 and np.isnan(blank.width)
    summary = summarise_borders("model", [measure_border(crisp), blank])
    assert summary.blank == 1 and summary.width.value == 0
