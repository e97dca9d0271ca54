"""What is no click, and what makes a picture start again: drags, pauses, a page out of sight, a window that changes."""

from __future__ import annotations

import json

import pytest
from browser_visitor import PHONE
from played_studies import CALM, make_click_study

SIZE = (160, 120)

HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def one(tmp_path, serve):
    return serve(*make_click_study(tmp_path / "study", count=1))


@pytest.fixture
def calm(tmp_path, serve):
    """With phases long enough to do something in them."""
    return serve(*make_click_study(tmp_path / "study", count=1, timings=CALM))


def only(served):
    [answer] = served.store.answers().to_dicts()
    return answer, json.loads(answer["circumstances"])


def finish(visitor):
    mark = visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    answer, circumstances = only(visitor.served)
    assert (int(answer["x"]), int(answer["y"])) == mark
    return answer, circumstances


def test_a_drag_and_another_button_are_no_click_but_a_shaking_hand_is_forgiven(one, visit):
    visitor = visit(one).enter().phase("click")
    x, y = visitor.point((80, 60), SIZE)
    visitor.page.mouse.move(x, y)
    visitor.page.mouse.down()
    visitor.page.mouse.move(x + 60, y, steps=3)
    visitor.page.mouse.up()
    assert "without dragging" in visitor.words(".hint")
    visitor.page.mouse.click(x, y, button="right")
    assert one.store.answers().is_empty()
    visitor.page.mouse.move(x, y)
    visitor.page.mouse.down()
    visitor.page.mouse.move(x + 4, y + 3)
    visitor.page.mouse.up()
    visitor.page.locator("[value=another]").wait_for()
    # Where the pointer went down is what was clicked.
    answer, _ = only(one)
    assert (int(answer["x"]), int(answer["y"]), answer["early"]) == (80, 60, 0)


def test_a_press_that_began_too_early_is_no_click_when_it_ends_in_time(calm, visit):
    visitor = visit(calm).enter().early()
    visitor.page.mouse.move(*visitor.point((80, 60), SIZE))
    visitor.page.mouse.down()
    visitor.phase("click").page.mouse.up()
    assert calm.store.answers().is_empty()
    assert finish(visitor)[0]["early"] == 1


def test_a_pause_by_key_or_button_starts_the_picture_again(one, visit):
    visitor = visit(one).enter()
    for key in ("p", "Escape", None):
        visitor.phase("click")
        visitor.page.keyboard.press(key) if key else visitor.press("#pause")
        visitor.page.locator("[value=continue]").wait_for()
        assert visitor.words("h1") == "Paused" and not visitor.page.locator("#pause").is_visible()
        visitor.page.keyboard.press("Enter")
    _, circumstances = finish(visitor)
    assert (circumstances["restarts"], circumstances["hidden"]) == (3, 0)


def test_stopping_from_a_pause_leads_to_the_end(one, visit):
    visitor = visit(one).enter().started()
    visitor.press("#pause")
    visitor.stop()
    assert "no completion code" in visitor.words("main")
    assert one.store.answers().is_empty()


def test_a_page_out_of_sight_pauses(one, visit):
    visitor = visit(one).enter().started()
    visitor.page.evaluate(HIDE, True)
    visitor.page.locator("[value=continue]").wait_for()
    assert "The page was hidden" in visitor.words()
    visitor.page.evaluate(HIDE, False)
    visitor.press("[value=continue]")
    _, circumstances = finish(visitor)
    assert (circumstances["restarts"], circumstances["hidden"]) == (1, 1)


def test_a_window_that_changes_starts_the_picture_again(calm, visit):
    visitor = visit(calm, PHONE).enter().phase("click")
    before = visitor.box()
    visitor.page.set_viewport_size({"width": 620, "height": 380})
    visitor.phase("stopped", "image", "target", "again")
    assert "window changed its size" in visitor.words(".foot")
    visitor.phase("click")
    assert visitor.box() != before
    _, circumstances = finish(visitor)
    assert circumstances["restarts"] == 1
    assert (circumstances["view_width"], circumstances["view_height"]) == (620, 380)


def test_a_pen_is_taken(one, visit):
    visitor = visit(one).enter().phase("click")
    x, y = visitor.point((80, 60), SIZE)
    session = visitor.context.new_cdp_session(visitor.page)
    for kind in ("mousePressed", "mouseReleased"):
        press = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1, "pointerType": "pen"}
        session.send("Input.dispatchMouseEvent", press)
    visitor.page.locator("[value=another]").wait_for()
    answer, circumstances = only(one)
    assert (int(answer["x"]), int(answer["y"])) == (80, 60)
    assert circumstances["pointer"] == "pen"
