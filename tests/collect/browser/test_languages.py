"""The language can be changed at the start of the work, by keys and by fingers, on a narrow phone too."""

from __future__ import annotations

import pytest
from browser_visitor import DESKTOP, PHONE
from played_studies import make_click_study, make_review_study

NARROW = {**PHONE, "viewport": {"width": 320, "height": 568}}

SIDEWAYS = "() => Math.max(...[...document.querySelectorAll('html, #screen')].map(e => e.scrollWidth - e.clientWidth))"


def change_by_keys(page, code):
    """From the heading, which has the focus, back to the languages that stand before it."""
    for _ in range(3):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("c => document.activeElement.matches(`#languages [value=${c}]`)", code):
            return page.keyboard.press("Enter")
    raise AssertionError(f"the language {code} is not reached by keys")


@pytest.mark.parametrize("look", [DESKTOP, NARROW], ids=["keys", "fingers"])
def test_another_language_at_the_start(tmp_path, serve, visit, look):
    served = serve(*make_click_study(tmp_path / "study", count=1))
    visitor = visit(served, look).join("en")
    page = visitor.page
    page.locator("[name=device]").first.wait_for()
    assert visitor.words("#languages").split() == ["English", "Deutsch"]
    assert page.evaluate(SIDEWAYS) <= 0
    visitor.press("#languages [value=de]") if visitor.touch else change_by_keys(page, "de")
    page.locator("html[lang=de] [name=device]").first.wait_for()
    assert visitor.words("h1") == "Welches Gerät benutzen Sie?"
    assert page.locator("#languages [aria-current]").get_attribute("value") == "de"
    assert served.store.participants()["language"].to_list() == ["de"]
    visitor.press("button.main")
    page.locator("[value=begin]").wait_for()
    assert page.locator("#languages").is_visible()
    visitor.press("[value=begin]")
    visitor.started()
    # The picture has the room, and a change would start the page anew.
    assert not page.locator("#languages").is_visible()


def test_one_language_is_no_choice(tmp_path, serve, visit):
    visitor = visit(serve(make_review_study(tmp_path / "study", languages=("de",)))).join("de")
    visitor.page.locator("[value=begin]").wait_for()
    assert not visitor.page.locator("#languages").is_visible()


def test_who_comes_back_may_change_it_too(discs, visit):
    visitor = visit(discs).enter()
    visitor.click_mark()
    visitor.answered(1).started().page.reload()
    visitor.page.locator("[value=begin]").wait_for()
    visitor.press("#languages [value=de]")
    visitor.page.locator("html[lang=de] [value=begin]").wait_for()
    assert "Willkommen zurück" in visitor.words()
