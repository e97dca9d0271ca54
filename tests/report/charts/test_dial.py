from __future__ import annotations

from hardlook.report.charts.dial import draw_dial, tabulate_dial

from .. import samples
from ..drawn import svgs, words


def test_controls_are_dashed_and_the_others_are_not():
    (svg,) = svgs(draw_dial(samples.dial(), "k", 840))
    dashes = [trace.find("path").get("stroke-dasharray") for trace in svg.findall(".//g[@class='trace']")]
    assert dashes == [None, "6 4"]


def test_each_line_ends_in_its_name_and_its_rank_correlation():
    (svg,) = svgs(draw_dial(samples.dial(), "k", 360))
    texts = [text.text for text in svg.find(".//g[@class='ends']").iter("text")]
    assert texts == ["label swaps", "ρ = \N{MINUS SIGN}1.00", "brightness", "control"]  # noqa: RUF001


def test_words_say_which_line_is_a_control():
    (svg,) = svgs(draw_dial(samples.dial(), "k", 840))
    assert "brightness (control, meant to stay flat): from 0.900 to 0.900, Spearman's rho 0.05." in words(svg)


def test_the_table_has_the_correlation_of_every_line():
    numbers = tabulate_dial(samples.dial())
    assert numbers.columns[-1] == "Spearman's rho"
    assert {(row[0], row[-1]) for row in numbers.rows} == {("label swaps", -1.0), ("brightness", 0.05)}
