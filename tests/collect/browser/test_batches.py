"""A whole set in every display mode, on a desktop and on a phone: coordinates, durations, early clicks, the code."""

from __future__ import annotations

import json
from statistics import median

import pytest
from browser_visitor import DESKTOP, PHONE
from played_studies import CALM, QUICK, make_click_study

from hardlook.collect.study.settings import DISPLAY_MODES

SIZE = (160, 120)

LOOKS = {"pc": DESKTOP, "mobile": PHONE}


@pytest.mark.parametrize("device", LOOKS)
@pytest.mark.parametrize("mode", DISPLAY_MODES)
def test_a_whole_set(tmp_path, serve, visit, mode, device):
    # One mode goes all the way from the link, by hand alone; the others begin after it, and have shorter phases.
    whole = mode == "cut-out"
    timings = CALM if whole else QUICK
    served = serve(*make_click_study(tmp_path / "study", modes=(mode,), size=SIZE, timings=timings))
    visitor = visit(served, LOOKS[device])
    visitor.begin() if whole else visitor.enter().press_early(answered=1)
    marks = []
    for number in range(3):
        if whole and number == 1:
            visitor.early().tap(*visitor.point((80, 60), SIZE))
        marks.append(visitor.click_mark())
    visitor.stop()

    answers = served.store.answers().sort("position")
    assert [(int(x), int(y)) for x, y in answers.select("x", "y").rows()] == marks
    assert answers["device"].unique().to_list() == [device]
    assert answers["mode"].unique().to_list() == [mode]
    assert answers["inside"].to_list() == [True] * 3 and answers["batch_valid"].to_list() == [True] * 3
    assert answers["early"].to_list() == [0, 1, 0]
    assert answers["shows"].to_list() == [1] * 3
    circumstances = [json.loads(text) for text in answers["circumstances"]]
    assert {row["pointer"] for row in circumstances} == {"touch" if device == "mobile" else "mouse"}
    assert {row["ratio"] for row in circumstances} == {3.0 if device == "mobile" else 1.0}
    assert {row["restarts"] for row in circumstances} == {0}
    check_durations([json.loads(text) for text in answers["durations"]], timings, mode)
    assert visitor.page.locator("#code").inner_text().strip()
    assert visitor.complaints == []
    assert all(url.startswith(served.address) for url in visitor.requested)


def check_durations(durations, timings, mode):
    """Of each phase, the median over the set is within two frames of the plan: a busy machine may miss a single one."""
    plan = {**timings, "target": timings["target_text" if mode == "text" else "target"]}
    frame = median(row["frame"] for row in durations)
    assert 5 <= frame <= 70
    for phase in ("image", "target", "again"):
        late = median(row[phase] - 1000 * plan[phase] for row in durations)
        assert -0.2 <= late <= 2 * frame, (phase, durations)


def test_another_set_until_there_is_none(tmp_path, serve, visit):
    served = serve(*make_click_study(tmp_path / "study", count=1, most_batches=2))
    visitor = visit(served).enter()
    visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    assert "Set 1 is done" in visitor.words() and "another 1" not in visitor.words()
    visitor.page.keyboard.press("Enter")
    visitor.click_mark()
    # Two sets are all that one person is asked for, so that nothing is asked here.
    visitor.page.wait_for_url("**/done")
    code = visitor.words("#code")
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.press("#copy")
    visitor.page.get_by_text("Copied.").wait_for()
    assert visitor.page.evaluate("navigator.clipboard.readText()") == code
    visitor.page.goto(f"{served.address}/work")
    visitor.page.wait_for_url("**/done")
    assert visitor.words("#code") == code
    assert served.store.answers()["subject"].n_unique() == 2
    assert served.store.participants()["finished"].null_count() == 0


def test_going_on_where_nothing_is_left_leads_to_the_end(tmp_path, serve, visit):
    visitor = visit(serve(*make_click_study(tmp_path / "study", count=1, batch_size=2))).enter()
    for _ in range(2):
        visitor.click_mark()
    visitor.page.locator("[value=another]").wait_for()
    assert visitor.words("#screen p >> nth=0") == "Thank you. Would you like to do another set, if there is one left?"
    visitor.press("[value=another]")
    visitor.page.wait_for_url("**/done")
    assert visitor.words("#code").strip()
