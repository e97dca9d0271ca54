"""axe-core on every screen, light and dark, wide and 320 pixels narrow: nothing serious, nothing to scroll sideways."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from browser_visitor import DESKTOP, PHONE
from played_studies import make_click_study, make_rating_study, make_review_study

from hardlook.collect.web.pages import render_page

AXE = importlib.util.find_spec("axe_playwright_python")

pytestmark = pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed")

RUN = "() => axe.run(document, { resultTypes: ['violations'] }).then(result => result.violations)"

WIDE = "() => [...document.querySelectorAll('html, #screen')].map(part => part.scrollWidth - part.clientWidth)"

NARROW = {**PHONE, "viewport": {"width": 320, "height": 568}}

LOOKS = {
    "wide-light-en": (DESKTOP, "light", "en"),
    "narrow-dark-de": (NARROW, "dark", "de"),
}


def check(visitor):
    """No serious or critical finding on the screen as it is, and no scrolling sideways."""
    page = visitor.page
    if not page.evaluate("() => 'axe' in globalThis"):
        page.evaluate(Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    found = [one for one in page.evaluate(RUN) if one["impact"] in ("serious", "critical")]
    assert [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found] == []
    assert max(page.evaluate(WIDE)) <= 0


@pytest.mark.parametrize("look", LOOKS)
def test_every_screen_of_a_click_study(tmp_path, serve, visit, look):
    options, scheme, language = LOOKS[look]
    terms = {
        "pay": "1 EUR",
        "minutes": 1.0,
        "completion_url": "https://a.example/?c={code}",
        "contact": "a@example.org",
    }
    made = make_click_study(tmp_path / "study", count=1, training=1, click_types=("fp", "fn"), **terms)
    visitor = visit(serve(*made), options, color_scheme=scheme)
    page = visitor.page
    page.goto(f"{visitor.served.address}/?lang={language}")
    check(visitor)
    page.goto(f"{visitor.served.address}/privacy?lang={language}")
    check(visitor)
    page.goto(f"{visitor.served.address}/join/nonsense")
    check(visitor)
    page.set_content(render_page("full.html", language, title="Discs", wanted=True, contact="a@example.org"))
    check(visitor)
    visitor.join(language).page.locator("[name=device]").first.wait_for()
    assert page.evaluate("document.documentElement.lang") == language
    check(visitor)
    visitor.press("button.main")
    page.locator(".how").wait_for()
    check(visitor)
    visitor.press("[value=begin]")
    visitor.phase("click")
    check(visitor)
    # Phases are too short to be looked at; their colours are set by their name alone.
    for phase in ("image", "target", "again"):
        page.evaluate("name => { document.querySelector('.trial').dataset.phase = name }", phase)
        page.evaluate("() => { document.querySelector('.hint').textContent = 'A hint' }")
        check(visitor)
    page.evaluate("() => { document.querySelector('.trial').dataset.phase = 'click' }")
    visitor.tap(*visitor.point((1, 1), (160, 120)))
    page.locator(".feedback").wait_for()
    check(visitor)
    visitor.press("[value=again]")
    visitor.click_mark()
    page.locator("[value=next]").wait_for()
    visitor.press("[value=next]")
    page.locator("[value=begin]").wait_for()
    visitor.press("[value=begin]")
    visitor.phase("click")
    visitor.press("#pause")
    page.locator("[value=continue]").wait_for()
    check(visitor)
    visitor.press("[value=continue]")
    visitor.phase("click")
    visitor.context.set_offline(True)
    visitor.click_mark()
    page.locator("#connection:not(:empty)").wait_for()
    check(visitor)
    visitor.context.set_offline(False)
    page.locator("[value=another]").wait_for()
    check(visitor)
    visitor.stop()
    assert page.locator("#finish").get_attribute("href").startswith("https://a.example/?c=")
    check(visitor)


@pytest.mark.parametrize("make", [make_review_study, make_rating_study], ids=["review", "rating"])
@pytest.mark.parametrize("look", LOOKS)
def test_every_screen_of_questions(tmp_path, serve, visit, make, look):
    options, scheme, language = LOOKS[look]
    visitor = visit(serve(make(tmp_path / "study", count=2)), options, color_scheme=scheme).enter(language)
    for count in range(2):
        visitor.asked(count)
        check(visitor)
        visitor.press(".buttons button >> nth=0")
        visitor.answered(count + 1)
    visitor.page.locator("[value=stop]").wait_for()
    check(visitor)


def test_the_phase_is_told_to_screen_readers_and_nothing_moves_for_those_who_mind(discs, visit):
    visitor = visit(discs, reduced_motion="reduce").enter().phase("click")
    assert visitor.page.locator(".phase").get_attribute("role") == "status"
    assert visitor.page.locator("#progress").evaluate("p => getComputedStyle(p).transitionDuration") == "0s"
    assert visitor.page.locator(".stage").evaluate("s => getComputedStyle(s).touchAction") == "none"
    assert visitor.page.locator(".stage").evaluate("s => getComputedStyle(s).cursor") == "crosshair"


def test_the_checks_find_what_is_wrong(discs, visit):
    visitor = visit(discs).enter().phase("click")
    visitor.page.evaluate("() => { document.querySelector('.phase').style.color = '#4488bb' }")
    with pytest.raises(AssertionError, match="color-contrast"):
        check(visitor)
