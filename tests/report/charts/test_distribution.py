from __future__ import annotations

import re

import numpy as np
import pytest
import report_samples
from drawn_charts import Axis, svgs, words

from hardlook.harness.sections import DistributionChart
from hardlook.report.charts.distribution import draw_distribution, tabulate_distribution


@pytest.mark.parametrize("width", [840.0, 360.0])
def test_the_mean_is_marked_where_the_axis_says(width):
    chart = DistributionChart("t", "c", (("a", [0.1, 0.2, 0.9]), ("b", [0.5, 0.7])), "IoU")
    (svg,) = svgs(draw_distribution(chart, "k", width))
    axis = Axis(svg, "x-axis")
    means = [axis.value(float(line.get("x1"))) for line in svg.findall(".//g[@class='mean']/line")]
    assert means == pytest.approx([0.4, 0.6], abs=2e-3)


def test_bars_are_as_high_as_the_shares_of_a_histogram():
    values = np.random.default_rng(3).uniform(0, 1, 500).tolist()
    (svg,) = svgs(draw_distribution(DistributionChart("t", "c", (("a", [0.0, 1.0, *values]),), "x"), "k", 840))
    bars = next(path.get("d") for path in svg.iter("path"))
    heights = [float(height) for height in re.findall(r"v-([\d.]+)", bars)]
    counts, _ = np.histogram([0.0, 1.0, *values], bins=40, range=(0, 1))
    assert np.allclose(np.array(heights) / max(heights), counts[counts > 0] / counts.max(), atol=5e-3)


def test_counts_leave_undefined_values_out_and_say_so():
    chart = report_samples.distribution()
    (svg,) = svgs(draw_distribution(chart, "k", 840))
    assert "b: 40 values" in words(svg)
    row = tabulate_distribution(chart).rows[1]
    assert row[:3] == ("b", 40, 1)
    assert row[3] == pytest.approx(np.mean(chart.groups[1][1][:40]))
