"""Reviews and ratings from the link to the code, by keys alone; and by fingers."""

from __future__ import annotations

import pytest
from browser_visitor import PHONE
from played_studies import make_rating_study, make_review_study


def focused(page, selector, most=12):
    """Press Tab until an element has the focus."""
    for _ in range(most):
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by the key Tab")


def join_by_keys(visitor, language="en"):
    page = visitor.page
    page.goto(f"{visitor.served.address}/?lang={language}")
    focused(page, "[name=agree]")
    page.keyboard.press("Space")
    focused(page, "button[type=submit]")
    page.keyboard.press("Enter")
    page.locator("[value=begin]").wait_for()
    page.keyboard.press("Enter")
    return visitor


def answer_by_keys(visitor, keys):
    for count, key in enumerate(keys):
        visitor.asked(count).page.keyboard.press(key)
        visitor.answered(count + 1)
    visitor.page.locator("[value=stop]").wait_for()
    focused(visitor.page, "[value=stop]")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**/done")
    answers = visitor.served.store.answers().sort("position")
    assert (answers["reaction_ms"] > 200).all()
    assert visitor.complaints == []
    return answers["value"].to_list()


@pytest.mark.parametrize(("language", "keys"), [("en", "yny"), ("de", "jnj")])
def test_a_review_by_keys(tmp_path, serve, visit, language, keys):
    visitor = join_by_keys(visit(serve(make_review_study(tmp_path / "study"))), language)
    visitor.page.locator(".question").wait_for()
    assert "a disc" in visitor.words("h1") and "on grey" in visitor.words("h1")
    assert answer_by_keys(visitor, keys) == [1, 0, 1]


@pytest.mark.parametrize("question", ["fit", "likeness"])
def test_a_rating_by_keys(tmp_path, serve, visit, question):
    visitor = join_by_keys(visit(serve(make_rating_study(tmp_path / "study", question=question))))
    visitor.page.locator(".question").wait_for()
    assert visitor.page.locator(".value").count() == (question == "fit")
    assert answer_by_keys(visitor, "190") == [1, 9, 10]


def test_a_rating_by_fingers_on_a_narrow_phone(tmp_path, serve, visit):
    narrow = {**PHONE, "viewport": {"width": 320, "height": 568}}
    visitor = visit(serve(make_rating_study(tmp_path / "study")), narrow).enter()
    for count, value in enumerate((3, 7, 10)):
        visitor.asked(count).press(f".buttons [value='{value}']")
        visitor.answered(count + 1)
    visitor.stop()
    assert visitor.served.store.answers().sort("position")["value"].to_list() == [3, 7, 10]


def test_the_rest_of_a_double_click_answers_nothing(tmp_path, serve, visit):
    visitor = visit(serve(make_review_study(tmp_path / "study"))).enter()
    visitor.asked(
        0
    ).page.evaluate("""() => { new MutationObserver(() => document.querySelector('.buttons button')?.click())
        .observe(document.getElementById('screen'), { childList: true }) }""")
    visitor.page.keyboard.press("n")
    visitor.asked(1)
    assert visitor.page.locator("#progress").evaluate("p => p.value") == 1
    assert visitor.served.store.answers()["value"].to_list() == [0]


def test_a_pause_in_a_review(tmp_path, serve, visit):
    visitor = visit(serve(make_review_study(tmp_path / "study"))).enter()
    visitor.page.locator(".question").wait_for()
    visitor.page.keyboard.press("p")
    visitor.page.locator("[value=continue]").wait_for()
    visitor.page.keyboard.press("y")
    assert visitor.served.store.answers().is_empty()
    visitor.page.keyboard.press("Enter")
    visitor.asked(0).page.keyboard.press("y")
    visitor.answered(1)
