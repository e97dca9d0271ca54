"""Errors of a prediction: what is missing and what is too much, told apart by words, sign and colour."""

from __future__ import annotations

import pytest
from browser_visitor import DESKTOP, PHONE
from played_studies import make_click_study

WORDS = {
    "fn": ("Missing", "+", {"target": "This is missing", "click": "Now click on what is missing"}),
    "fp": ("Too much", "\u2212", {"target": "This is too much", "click": "Now click on what is too much"}),
}

TARGET = """() => {
  const trial = document.querySelector('.trial[data-phase=target]');
  return trial && [trial.dataset.clickType, ...['.phase', '.kind'].map(part => trial.querySelector(part).innerText)];
}"""

COLOUR = "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number)"


@pytest.mark.parametrize("look", [DESKTOP, PHONE], ids=["pc", "mobile"])
def test_each_kind_has_its_words_its_sign_and_its_colour(tmp_path, serve, visit, look):
    served = serve(*make_click_study(tmp_path / "study", count=1, batch_size=2, click_types=("fn", "fp")))
    visitor = visit(served, look).enter()
    colours = {}
    for _ in range(2):
        # All at once, as the phase is short.
        kind, phase, words = visitor.page.wait_for_function(TARGET).json_value()
        name, sign, said = WORDS[kind]
        assert phase == said["target"]
        assert words.replace("\n", " ").split(maxsplit=1) == [sign, name]
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


ERRORS = {
    "en": {"Missing": "left out", "Too much": "included"},
    "de": {"Fehlt": "ausgelassen", "Zu viel": "dazugenommen"},
}


@pytest.mark.parametrize("language", ERRORS)
def test_the_instructions_say_what_the_kinds_mean(tmp_path, serve, visit, language):
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1, click_types=("fn", "fp"))))
    visitor.join(language)
    visitor.page.locator("[name=device]").first.wait_for()
    visitor.press("button.main")
    lines = visitor.page.locator(".errors li")
    lines.first.wait_for()
    for said, (name, meaning) in zip(lines.all_inner_texts(), ERRORS[language].items(), strict=True):
        assert said.startswith(f"{name}: ") and meaning in said


def test_a_study_of_one_kind_explains_that_kind(tmp_path, serve, visit):
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1, click_types=("fp",))))
    visitor.join()
    visitor.page.locator("[name=device]").first.wait_for()
    visitor.press("button.main")
    visitor.page.locator(".errors").wait_for()
    assert "Too much" in visitor.words() and "Missing" not in visitor.words()


def test_the_first_round_has_no_such_words(discs, visit):
    visitor = visit(discs).enter().phase("click")
    assert visitor.page.locator(".kind").count() == 0
    assert visitor.words(".phase") == "Now click on it"
