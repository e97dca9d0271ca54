"""Where a click lands, found by looking: the mark on a screenshot is clicked, and the stored pixel is the mark's."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from browser_visitor import DESKTOP, PHONE
from hypothesis import given, settings
from hypothesis import strategies as st
from played_studies import MARK, make_click_study

WAYS = {
    "one device pixel a pixel": (DESKTOP, (160, 120)),
    "zoomed to 150 %": ({**DESKTOP, "device_scale_factor": 1.5}, (160, 120)),
    "three device pixels a pixel": ({"viewport": {"width": 500, "height": 400}, "device_scale_factor": 3}, (160, 120)),
    "a wide picture in a low window": ({"viewport": {"width": 700, "height": 420}}, (300, 60)),
    "a tall picture on a phone": (PHONE, (90, 200)),
}


def seen_mark(page, ratio):
    """The middle of the mark in CSS pixels, from a screenshot."""
    shot = cv2.imdecode(np.frombuffer(page.screenshot(), np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1].astype(int)
    rows, columns = np.nonzero(np.abs(shot - MARK).sum(axis=2) < 200)
    return (columns.mean() + 0.5) / ratio, (rows.mean() + 0.5) / ratio


def click_what_is_seen(visitor):
    visitor.phase("click")
    ratio = visitor.page.evaluate("devicePixelRatio")
    mark = visitor.served.marks[visitor.task().id]
    visitor.tap(*seen_mark(visitor.page, ratio))
    visitor.page.locator("[value=another]").wait_for()
    [answer] = visitor.served.store.answers().to_dicts()
    return answer, mark


@pytest.mark.parametrize("way", WAYS)
def test_a_click_on_the_mark_is_stored_as_the_mark(tmp_path, serve, visit, way):
    look, size = WAYS[way]
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1, size=size)), look).enter()
    answer, mark = click_what_is_seen(visitor)
    assert (answer["x"], answer["y"]) == pytest.approx((mark[0] + 0.5, mark[1] + 0.5), abs=0.4)
    assert answer["inside"]


def test_a_page_that_is_scrolled(tmp_path, serve, visit):
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1)))
    visitor.join().page.locator("[name=device]").first.wait_for()
    visitor.press("button.main")
    visitor.page.locator("[value=begin]").wait_for()
    visitor.page.evaluate("document.documentElement.style.padding = '333.3px 0 900px 41px'")
    visitor.press("[value=begin]")
    visitor.phase("click").page.evaluate("scrollTo(17, 210.5)")
    assert visitor.page.evaluate("scrollY") > 200
    answer, mark = click_what_is_seen(visitor)
    assert (answer["x"], answer["y"]) == pytest.approx((mark[0] + 0.5, mark[1] + 0.5), abs=0.4)


def test_a_page_that_is_zoomed_with_two_fingers(tmp_path, serve, visit):
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1)), PHONE).enter()
    visitor.phase("click")
    visitor.context.new_cdp_session(visitor.page).send("Emulation.setPageScaleFactor", {"pageScaleFactor": 2})
    visitor.page.wait_for_function("() => visualViewport.scale > 1.9")
    mark = visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    [answer] = visitor.served.store.answers().to_dicts()
    assert (int(answer["x"]), int(answer["y"])) == mark
    assert json.loads(answer["circumstances"])["zoom"] == pytest.approx(2, abs=0.01)


def test_beside_the_picture_is_no_click(tmp_path, serve, visit):
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1, size=(90, 200)))).enter()
    visitor.phase("click")
    left, top, _, height = visitor.box()
    visitor.tap(left - 20, top + height / 2)
    assert "beside" in visitor.words(".hint")
    assert visitor.served.store.answers().is_empty()
    visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    assert visitor.served.store.answers()["early"].to_list() == [0]


@pytest.fixture(scope="module")
def maths(browser):
    """The module of coordinates alone, on an empty page."""
    from hardlook.collect.web.pages import load_static_files

    source = load_static_files()["coordinates.js"][0].decode()
    page = browser.new_page()
    page.evaluate("async text => { globalThis.maths = await import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'}))) }", source)  # fmt: skip  # noqa: E501
    yield page
    page.close()


sizes = st.integers(1, 4000)

rooms = st.tuples(*[st.floats(0, 300)] * 2, *[st.floats(50, 3000)] * 2)


@settings(max_examples=25)
@given(sizes, sizes, rooms, st.sampled_from([1, 1.1, 1.25, 1.5, 2, 2.625, 3]))
def test_the_box_lies_in_the_room_on_whole_device_pixels(maths, width, height, room, ratio):
    left, top, wide, high = room
    box = maths.evaluate(
        "([w, h, l, t, rw, rh, r]) => maths.fit(w, h, new DOMRect(l, t, rw, rh), r)",
        [width, height, left, top, wide, high, ratio],
    )
    edges = [(left + box["left"]) * ratio, (top + box["top"]) * ratio, box["width"] * ratio, box["height"] * ratio]
    assert edges == pytest.approx([round(edge) for edge in edges], abs=1e-6)
    assert box["left"] >= -1e-6 and box["top"] >= -1e-6
    assert box["left"] + box["width"] <= wide + 1e-6 and box["top"] + box["height"] <= high + 1e-6
    # As large as whole device pixels in the room allow, and of the picture's shape to half of one.
    assert wide - box["width"] < 3.01 / ratio or high - box["height"] < 3.01 / ratio
    scales = [
        ((edge - 0.501) / side, (edge + 0.501) / side) for edge, side in zip(edges[2:], (width, height), strict=True)
    ]
    least, most = max(low for low, _ in scales), min(high for _, high in scales)
    assert least <= most or min(edges[2:]) == pytest.approx(1)


@settings(max_examples=25)
@given(sizes, sizes, st.floats(-500, 500), st.floats(0.05, 20), st.floats(-0.2, 1.2), st.floats(-0.2, 1.2))
def test_points_of_the_picture_are_its_pixels(maths, width, height, left, scale, across, down):
    found = maths.evaluate(
        "([x, y, l, w, h, pw, ph]) => maths.imagePoint(x, y, new DOMRect(l, l, w, h), pw, ph)",
        [
            left + across * width * scale,
            left + down * height * scale,
            left,
            width * scale,
            height * scale,
            width,
            height,
        ],
    )
    near_an_edge = any(abs(share - edge) < 1e-6 for share in (across, down) for edge in (0, 1))
    if not near_an_edge:
        assert (found is not None) == (0 <= across < 1 and 0 <= down < 1)
    if found:
        assert (found["x"], found["y"]) == pytest.approx((across * width, down * height), abs=1e-6 * max(width, height))
        assert 0 <= found["x"] < width and 0 <= found["y"] < height
