"""Errors of a prediction: what is missing and what is too much, told apart by words, sign and colour."""

from __future__ import annotations

import pytest

from .played_studies import QUICK, make_click_study
from .visitor import DESKTOP, PHONE

WORDS = {
    "fn": ("Missing", "+", {"target": "This is missing", "click": "Now click on what is missing"}),
    "fp": ("Too much", "\u2212", {"target": "This is too much", "click": "Now click on what is too much"}),
}
COLOUR = "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number)"


@pytest.mark.parametrize("look", [DESKTOP, PHONE], ids=["pc", "mobile"])
def test_each_kind_has_its_words_its_sign_and_its_colour(tmp_path, serve, visit, look):
    slow = {**QUICK, "target": 1.5}
    made = make_click_study(tmp_path / "study", count=1, batch_size=2, click_types=("fn", "fp"), timings=slow)
    served = serve(*made)
    visitor = visit(served, look).enter()
    colours = {}
    for _ in range(2):
        visitor.phase("target")
        kind = visitor.page.locator(".trial").get_attribute("data-click-type")
        name, sign, said = WORDS[kind]
        assert visitor.words(".phase") == said["target"]
        assert visitor.words(".kind").replace("\n", " ").split(maxsplit=1) == [sign, name]
        visitor.phase("click")
        assert visitor.words(".phase") == said["click"].replace("click", "tap" if visitor.touch else "click")
        colours[kind] = visitor.page.locator(".phase").evaluate(COLOUR)
        assert visitor.page.locator(".kind b").evaluate(COLOUR) == colours[kind]
        visitor.click_mark()
    visitor.stop()
    red, green = colours["fp"], colours["fn"]
    assert red[0] > red[1] and green[1] > green[0]
    stems = {task.full_stem.rpartition("_")[2] for task in served.study.tasks}
    assert stems == {"fn", "fp"} and served.store.answers()["inside"].all()


def test_the_first_round_has_no_such_words(discs, visit):
    visitor = visit(discs).enter().phase("click")
    assert visitor.page.locator(".kind").count() == 0
    assert visitor.words(".phase") == "Now click on it"
