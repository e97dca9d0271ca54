"""The device is guessed and confirmed, and the practice says how each click went."""

from __future__ import annotations

import pytest
from browser_visitor import DESKTOP, PHONE
from played_studies import make_click_study

SIZE = (160, 120)


@pytest.fixture
def practised(tmp_path, serve):
    return serve(*make_click_study(tmp_path / "study", count=1, training=2, instructions={"en": "Mind the discs."}))


def test_the_practice_tells_right_near_and_outside(practised, visit):
    visitor = visit(practised).join()
    visitor.page.locator("[name=device]").first.wait_for()
    visitor.press("button.main")
    visitor.page.locator("[value=begin]").wait_for()
    assert "Mind the discs." in visitor.words() and visitor.page.locator(".errors").count() == 0
    visitor.press("[value=begin]")

    visitor.phase("click").tap(*visitor.point((1, 1), SIZE))
    visitor.page.locator(".feedback img").wait_for()
    assert "outside" in visitor.words("h1") and visitor.words("#progress-words") == "Practice: 0 of 2"
    assert visitor.page.locator("[value=next]").count() == 0
    visitor.press("[value=again]")

    mark = practised.marks["t000002"]
    radius = min(SIZE) // 5
    beside = mark[0] - radius - 3 if mark[0] > SIZE[0] / 2 else mark[0] + radius + 3
    visitor.phase("click").tap(*visitor.point((beside, mark[1]), SIZE))
    visitor.page.locator("[value=next]").wait_for()
    assert "just beside" in visitor.words("h1") and visitor.words("#progress-words") == "Practice: 1 of 2"
    visitor.press("[value=next]")

    visitor.click_mark()
    visitor.page.locator("[value=next]").wait_for()
    assert visitor.words("h1").startswith("Correct") and visitor.words("#progress-words") == "Practice: 2 of 2"
    visitor.press("[value=next]")
    visitor.page.locator("[value=begin]").wait_for()
    assert "From now on your answers count" in visitor.words()
    # Nothing of it is stored but that it is done, and it does not come again.
    assert practised.store.answers().is_empty()
    assert practised.store.participants()["trained"].is_not_null().all()
    visitor.press("[value=begin]")
    visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    assert practised.store.answers().height == 1


@pytest.mark.parametrize(("look", "guess"), [(DESKTOP, "pc"), (PHONE, "mobile")])
def test_the_device_is_guessed_and_can_be_corrected(discs, visit, look, guess):
    visitor = visit(discs, look).join()
    visitor.page.locator("[name=device]").first.wait_for()
    assert visitor.page.locator("[name=device]:checked").get_attribute("value") == guess
    other = {"pc": "mobile", "mobile": "pc"}[guess]
    visitor.press(f"label:has([value={other}])")
    assert visitor.page.locator("[name=device]:checked").get_attribute("value") == other
    visitor.press("button.main")
    visitor.page.locator("[value=begin]").wait_for()
    assert discs.store.participants()["device"].to_list() == [other]


def test_a_finger_on_a_computer_is_noticed(discs, visit):
    visitor = visit(discs, has_touch=True).join()
    visitor.page.locator("[name=device]").first.wait_for()
    visitor.page.touchscreen.tap(400, 550)
    assert visitor.page.locator("[name=device]:checked").get_attribute("value") == "mobile"


def test_a_device_that_the_study_does_not_want_is_told_so(tmp_path, serve, visit):
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1, devices=("mobile",)))).join()
    visitor.page.locator("[name=device]").first.wait_for()
    visitor.press("button.main")
    visitor.page.get_by_text("This study needs").wait_for()
    assert visitor.page.locator("[name=device]").count() == 2
