"""The device that is stored is the one that was on the screen when it was confirmed."""

from __future__ import annotations

import pytest
from browser_visitor import DESKTOP, PHONE

# A press and a move of a pointer of that kind on an element, as a browser reports them before its click.
POINT = """([selector, pointerType]) => {
  const at = { bubbles: true, isPrimary: true, button: 0, pointerType };
  for (const name of ['pointermove', 'pointerdown', 'pointermove', 'pointerup']) {
    document.querySelector(selector).dispatchEvent(new PointerEvent(name, at));
  }
}"""


@pytest.mark.parametrize("pointer", ["mouse", "touch", "pen"])
@pytest.mark.parametrize(("look", "guess"), [(DESKTOP, "pc"), (PHONE, "mobile")])
def test_no_press_changes_what_is_confirmed(discs, visit, look, guess, pointer):
    visitor = visit(discs, look).join()
    page = visitor.page
    page.locator("[name=device]").first.wait_for()
    assert page.locator("[name=device]:checked").input_value() == guess
    for selector in ("h1", "button.main"):
        page.evaluate(POINT, [selector, pointer])
        assert page.locator("[name=device]:checked").input_value() == guess
    page.evaluate("() => document.querySelector('button.main').click()")
    page.locator("[value=begin]").wait_for()
    assert discs.store.participants()["device"].to_list() == [guess]


def test_what_the_participant_picks_is_stored(discs, visit):
    visitor = visit(discs).join()
    visitor.page.locator("[name=device][value=mobile]").check()
    visitor.press("button.main")
    visitor.page.locator("[value=begin]").wait_for()
    assert discs.store.participants()["device"].to_list() == ["mobile"]
    # From here on the page speaks of fingers.
    words = visitor.words()
    assert "Tap once" in words and "click" not in words.lower() and "Key" not in words


def test_every_screen_begins_at_its_top(discs, visit):
    visitor = visit(discs, PHONE | {"viewport": {"width": 320, "height": 300}}).join()
    page = visitor.page
    page.locator("[name=device]").first.wait_for()
    page.evaluate("() => document.getElementById('screen').scrollTo(0, 1000)")
    assert page.locator("h1").bounding_box()["y"] < 0
    visitor.press("button.main")
    page.locator("[value=begin]").wait_for()
    assert page.locator("h1").bounding_box()["y"] > 0


def test_who_opens_the_link_on_another_device_is_asked_again(discs, visit):
    visitor = visit(discs).begin()
    visitor.phase("image", "target", "again", "click")
    phone = visit(discs, PHONE)
    phone.context.add_cookies(visitor.context.cookies())
    phone.page.goto(f"{discs.address}/work")
    phone.page.locator("[name=device]").first.wait_for()
    assert phone.page.locator("[name=device]:checked").input_value() == "mobile"
    phone.press("button.main")
    phone.page.locator("[value=begin]").wait_for()
    assert discs.store.participants()["device"].to_list() == ["mobile"]
    # Where it was confirmed it is not asked for again.
    phone.page.reload()
    phone.page.locator("[value=begin]").wait_for()
    assert not phone.page.locator("[name=device]").count()


def test_the_whole_way_but_the_click_goes_by_keyboard(discs, visit):
    visitor = visit(discs)
    page = visitor.page
    page.goto(f"{discs.address}/?lang=en")
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.name") == "agree":
            break
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("[name=device]").first.wait_for()
    # The heading has the focus, so that a screen reader says where one is.
    assert page.evaluate("() => document.activeElement.tagName") == "H1"
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.name") == "device":
            break
    page.keyboard.press("ArrowDown")
    assert page.locator("[name=device]:checked").input_value() == "mobile"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".how").wait_for()
    assert page.evaluate("() => document.activeElement.tagName") == "H1"
    page.keyboard.press("Enter")
    visitor.phase("image", "target", "again", "click")
    page.keyboard.press("p")
    page.locator("[value=continue]").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/done")
    assert discs.store.participants()["device"].to_list() == ["pc"]
