"""The categorical colours stay apart for readers who see two cone types, simulated as Machado et al. (2009) do."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, xyz2lab

from hardlook.harness.sections import Example, Gallery, Picture
from hardlook.report.charts import palette
from hardlook.report.galleries import draw_gallery

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}

# sRGB's primaries (IEC 61966-2-1).
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])

LEAST = 10.0


def seen(colour: str, sight: str) -> np.ndarray:
    """The colour in CIELAB as that reader sees it."""
    shares = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return xyz2lab(TO_XYZ @ np.clip(SIGHTS[sight] @ linear, 0, 1))


def distances(colours, sight):
    labs = {colour: seen(colour, sight) for colour in colours}
    return {(a, b): float(deltaE_ciede2000(labs[a], labs[b])) for a, b in combinations(colours, 2)}


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("colours", [palette.CATEGORIES_LIGHT, palette.CATEGORIES_DARK], ids=["light", "dark"])
def test_categories_stay_apart(colours, sight):
    near = {pair: far for pair, far in distances(colours, sight).items() if far < LEAST}
    assert not near


@pytest.mark.parametrize("sight", SIGHTS)
def test_both_ends_of_a_diverging_ramp_stay_apart(sight):
    for dark in (False, True):
        ramp = [palette.list_colours(dark=dark)[f"d{step}"] for step in range(palette.STEPS + 1)]
        assert all(far > LEAST for far in distances((ramp[1], ramp[-2]), sight).values())
        assert all(far > LEAST for far in distances((ramp[3], ramp[-4]), sight).values())


@pytest.mark.parametrize("sight", SIGHTS)
def test_positive_and_negative_clicks_stay_apart(sight):
    image = np.zeros((64, 64, 3), np.uint8)
    picture = Picture("p", image, points=((9.0, 9.0, True), (40.0, 40.0, False)))
    drawn = draw_gallery(Gallery("t", "", (Example("u", ""),)), {"u": [picture]})
    fills = re.findall(r'<circle[^>]* fill="(#[0-9a-f]{6})"', drawn)
    assert len(fills) == 2
    assert all(far > LEAST for far in distances(fills, sight).values())


def test_the_simulation_merges_red_and_green_for_deuteranopia_only():
    (normal,) = distances(("#c44040", "#7a7a2c"), "all cones").values()
    (merged,) = distances(("#c44040", "#7a7a2c"), "deuteranopia").values()
    assert normal > 30 > 2 * merged
