"""Without a connection, with a page that is opened again, with a picture that does not come: no answer is lost."""

from __future__ import annotations

import json

from played_studies import make_click_study

KEPT = "Object.keys(localStorage).filter(name => name.startsWith('hardlook.answer.')).length"


def test_an_answer_given_offline_is_kept_said_and_sent_once(discs, visit):
    visitor = visit(discs).enter()
    first = visitor.click_mark()
    visitor.answered(1).phase("click")
    visitor.context.set_offline(True)
    second = visitor.click_mark()
    since = visitor.page.evaluate("Date.now()")
    visitor.answered(2).page.locator("#connection:not(:empty)").wait_for()
    assert "No connection" in visitor.words("#connection") and "1 answer is waiting" in visitor.words("#connection")
    assert visitor.page.evaluate(KEPT) == 1
    assert discs.store.answers().height == 1
    offline = visitor.page.evaluate("Date.now()") - since
    visitor.context.set_offline(False)
    third = visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    answers = discs.store.answers().sort("position")
    assert [(int(x), int(y)) for x, y in answers.select("x", "y").rows()] == [first, second, third]
    waited = [json.loads(text)["queued_ms"] for text in answers["circumstances"]]
    assert waited[1] >= offline
    assert visitor.page.evaluate(KEPT) == 0 and visitor.words("#connection") == ""


def test_an_answer_that_never_left_is_sent_by_the_next_visit(discs, visit):
    visitor = visit(discs).enter().phase("click")
    visitor.page.route("**/api/answers", lambda route: route.abort())
    mark = visitor.click_mark()
    visitor.page.locator("#connection:not(:empty)").wait_for()
    visitor.page.unroute("**/api/answers")
    visitor.page.reload()
    visitor.page.locator("[value=begin]").wait_for()
    assert "2 to go" in visitor.words()
    [answer] = discs.store.answers().to_dicts()
    assert (int(answer["x"]), int(answer["y"])) == mark


def test_an_answer_of_another_study_at_this_address_is_left_alone(tmp_path, discs, serve, visit):
    visitor = visit(discs).enter().phase("click")
    visitor.page.route("**/api/answers", lambda route: route.abort())
    visitor.click_mark()
    visitor.page.locator("#connection:not(:empty)").wait_for()
    visitor.page.goto("about:blank")
    visitor.page.unroute("**/api/answers")
    visitor.served = other = serve(*make_click_study(tmp_path / "other", count=1))
    visitor.enter().click_mark()
    visitor.page.locator("[value=another]").wait_for()
    assert other.store.answers().height == 1 and visitor.words("#connection") == ""
    # It waits for its own study to come back.
    assert visitor.page.evaluate(KEPT) == 1 and discs.store.answers().is_empty()


def test_an_acknowledgement_that_is_lost_makes_no_second_answer(discs, visit):
    visitor = visit(discs).enter().phase("click")
    seen = []

    def lose(route):
        seen.append(route.fetch().json())
        route.abort() if len(seen) == 1 else route.fulfill(json=seen[-1])

    visitor.page.route("**/api/answers", lose)
    visitor.click_mark()
    visitor.answered(1).phase("click")
    visitor.page.wait_for_function(f"() => {KEPT} === 0")
    assert [answer["repeated"] for answer in seen] == [False, True]
    assert discs.store.answers().height == 1


def test_opening_the_page_again_goes_on_where_it_stopped(discs, visit):
    visitor = visit(discs).enter()
    visitor.click_mark()
    visitor.answered(1).started()
    visitor.page.reload()
    visitor.page.locator("[value=begin]").wait_for()
    assert "Welcome back" in visitor.words() and "2 to go" in visitor.words()
    visitor.press("[value=begin]")
    visitor.click_mark()
    visitor.answered(2).click_mark()
    visitor.page.locator("[value=another]").wait_for()
    answers = discs.store.answers().sort("position")
    assert answers["position"].to_list() == [0, 1, 2]
    # The picture that was on when the page was closed was shown twice, and says so.
    assert answers["shows"].to_list() == [1, 2, 1]


def test_a_picture_that_does_not_come_is_said_and_tried_again(discs, visit):
    visitor = visit(discs)
    visitor.page.route("**/pictures/*/target", lambda route: route.abort())
    visitor.enter().page.locator("[value=again]").wait_for()
    assert "could not be loaded" in visitor.words()
    assert visitor.page.locator(".trial").count() == 0
    visitor.page.unroute("**/pictures/*/target")
    visitor.press("[value=again]")
    visitor.click_mark()
    visitor.answered(1)


def test_too_many_requests_are_waited_out(discs, visit):
    visitor = visit(discs).enter().phase("click")
    times = []

    def slow(route):
        times.append(route)
        busy = {"error": "too-many", "message": "Too many."}
        route.fulfill(status=429, headers={"Retry-After": "1"}, json=busy) if len(times) == 1 else route.continue_()

    visitor.page.route("**/api/answers", slow)
    visitor.click_mark()
    visitor.page.locator("#connection:not(:empty)").wait_for()
    assert "Too many requests" in visitor.words("#connection")
    visitor.page.wait_for_function(f"() => {KEPT} === 0")
    assert len(times) == 2 and discs.store.answers().height == 1


def test_an_answer_that_is_refused_for_good_is_said_and_does_not_block(discs, visit):
    visitor = visit(discs).enter().phase("click")
    once = []

    def refuse(route):
        once.append(route)
        said = {"error": "too-early", "message": "Not like this."}
        route.fulfill(status=409, json=said) if len(once) == 1 else route.continue_()

    visitor.page.route("**/api/answers", refuse)
    visitor.click_mark()
    visitor.page.locator("#connection:not(:empty)").wait_for()
    assert "Not like this" in visitor.words("#connection")
    for count in (2, 3):
        visitor.click_mark()
        visitor.answered(count)
    # The server still wants the first one, and the page asks what is left instead of calling the set done.
    visitor.page.wait_for_function("() => document.getElementById('progress').value === 2")
    visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    assert discs.store.answers().height == 3


def test_without_a_session_the_page_says_what_to_do(discs, visit):
    visitor = visit(discs)
    visitor.page.goto(f"{discs.address}/work?lang=de")
    visitor.page.locator("h1").wait_for()
    assert "Öffnen Sie Ihren Link noch einmal" in visitor.words()
