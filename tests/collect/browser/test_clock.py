"""With the spec's own timings and a clock that the test turns, a frame at a time: phases last what the plan says."""

from __future__ import annotations

import json
import math

import pytest
from browser_visitor import DESKTOP, PHONE
from played_studies import make_click_study

SIZE = (160, 120)

# Of the turned clock: a frame every 16 ms.
FRAME = 16

SPEC = {"image": 1500, "target": 2000, "target_text": 2500, "again": 1500}

PHASE = "document.querySelector('.trial').dataset.phase ?? ''"


class Turned:
    """A visitor whose browser's time stands still but for what the test adds."""

    def __init__(self, visitor):
        self.visitor, self.page = visitor, visitor.page
        self.page.clock.install(time=0)

    def begin(self):
        self.visitor.join()
        self.page.locator("[name=device]").first.wait_for()
        self.visitor.press("button.main")
        self.page.locator("[value=begin]").wait_for()
        self.page.clock.pause_at(1_000_000)
        self.visitor.press("[value=begin]")
        self.page.locator(".trial").wait_for(state="attached")
        return self

    def phase(self):
        return self.page.evaluate(PHASE)

    def frames(self, count):
        self.page.clock.run_for(FRAME * count)

    def until(self, phase, at_most):
        """Turn frame by frame until a phase begins; how many it took."""
        for count in range(1, at_most + 1):
            self.frames(1)
            if self.phase() == phase:
                return count
        raise AssertionError(f"{phase} did not begin within {at_most} frames, but {self.phase()!r} is on")


@pytest.mark.parametrize(("mode", "look"), [("cut-out", DESKTOP), ("text", PHONE)], ids=["cut-out-pc", "text-mobile"])
def test_phases_last_to_the_frame_and_a_click_a_frame_too_early_is_refused(tmp_path, serve, visit, mode, look):
    timings = {name: value / 1000 for name, value in SPEC.items()}
    served = serve(*make_click_study(tmp_path / "study", count=1, modes=(mode,), timings=timings))
    visitor = visit(served, look)
    turned = Turned(visitor).begin()
    assert turned.phase() == ""
    assert turned.until("image", 2) <= 2
    plan = {
        "image": SPEC["image"],
        "target": SPEC["target_text" if mode == "text" else "target"],
        "again": SPEC["again"],
    }
    taken = {phase: math.ceil(milliseconds / FRAME) for phase, milliseconds in plan.items()}
    early = visitor.point((80, 60), SIZE)
    for phase, after in (("image", "target"), ("target", "again")):
        turned.frames(taken[phase] - 1)
        assert turned.phase() == phase
        visitor.tap(*early)
        turned.frames(1)
        assert turned.phase() == after
    turned.frames(taken["again"] - 1)
    assert turned.phase() == "again"
    visitor.tap(*early)
    assert "early" in visitor.words(".hint")
    assert served.store.answers().is_empty()
    turned.frames(1)
    assert turned.phase() == "click" and visitor.words(".hint") == ""
    turned.frames(40)
    # The server does not take a click sooner than the plan allows, by its own clock.
    served.clock.ahead += 60
    mark = visitor.click_mark()
    turned.page.locator("[value=another]").wait_for()

    [answer] = served.store.answers().to_dicts()
    durations = json.loads(answer["durations"])
    assert {phase: durations[phase] for phase in plan} == {phase: FRAME * count for phase, count in taken.items()}
    assert durations["frame"] == durations["longest_frame"] == FRAME
    assert answer["early"] == 3
    assert answer["reaction_ms"] == 40 * FRAME
    assert (int(answer["x"]), int(answer["y"])) == mark


def test_a_frame_that_comes_late_is_measured(tmp_path, serve, visit):
    timings = {name: value / 1000 for name, value in SPEC.items()}
    served = serve(*make_click_study(tmp_path / "study", count=1, timings=timings))
    visitor = visit(served)
    turned = Turned(visitor).begin()
    turned.until("image", 2)
    turned.frames(10)
    # A machine that stands still for a second shows one frame where there should be many.
    turned.page.clock.fast_forward(1000)
    turned.frames(400)
    assert turned.phase() == "click"
    served.clock.ahead += 60
    visitor.click_mark()
    turned.page.locator("[value=another]").wait_for()
    durations = json.loads(served.store.answers()["durations"][0])
    assert durations["frame"] == FRAME
    assert 1000 <= durations["longest_frame"] <= 1000 + 2 * FRAME
    assert SPEC["image"] <= durations["image"] <= SPEC["image"] + 2 * FRAME
