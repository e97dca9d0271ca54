"""RClicks on one thread: everything that is not the network, distances between clicks, and encodings an image.

Run `python benchmarks/rclicks.py`; the GPU's part is `rclicks_gpu.py`. Distances between sets of clicks are those of
`click_distances.py`. Encodings are counted in a run on the planted world. Then everything that is not the network is
timed, per course and click, beside a full-frame implementation: one instance of a quarter of the frame, the centre
rule and ten groups, 20 rounds, at two frame sizes and for two click models. The masks come from a segmenter that is
told the object and errs along its border, ever less with further clicks and not at all near them. Only our side is
timed: errors, distances, click maps, groups, draws, counts and prompts. The full-frame implementation does the same
by its words, over the whole frame and with OpenCV's transform, for the same masks and clicks. Processor time.
"""

import time
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import click_distances
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.models.registry import build
from hardlook.models.roles import Clicks, Mask, Prompted
from hardlook.rclicks.clicks.courses import BASE, Course, Instance, Rules, make_clicking_groups
from hardlook.rclicks.clicks.simulation import Trajectories, simulate_clicks
from hardlook.threads import pin_threads, set_thread_variables

SIZES = ((480, 640, 3.0), (1365, 2048, 25.0))  # height, width, most milliseconds
RATIO = 6.0
ROUNDS = 20
COURSES = (BASE, *make_clicking_groups(10))


class Improving:
    """A session that knows the object: its border wavers by a field that the first click picks."""

    def __init__(self, height: int, width: int) -> None:
        rng = np.random.default_rng(0)
        self.size = (width, height)
        y, x = np.mgrid[:height, :width].astype(np.float32)
        # Above 0 in an ellipse of a quarter of the frame.
        depth = 1 - np.hypot(y / height - 0.5, x / width - 0.5) * np.sqrt(4 * np.pi)
        self.border = depth + 0.1 * self._field(rng)
        self.target: Mask = self.border > 0
        self.fields = [self._field(rng) for _ in range(len(COURSES))]

    def _field(self, rng: np.random.Generator) -> NDArray[np.float32]:
        coarse, fine = rng.normal(size=(6, 8)), rng.normal(size=(30, 40))
        grown = [cv2.resize(one.astype(np.float32), self.size, interpolation=cv2.INTER_CUBIC) for one in (coarse, fine)]
        return np.asarray(grown[0] + 0.4 * grown[1])

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask a prompt."""
        return [Prompted(self._mask(prompt)) for prompt in prompts]

    def _mask(self, prompt: Clicks) -> Mask:
        field = self.fields[int(prompt.points[0].sum()) % len(self.fields)]
        mask: Mask = self.border + 0.4 / len(prompt.points) ** 0.5 * field > 0
        near = np.zeros(mask.shape, np.uint8)
        for x, y in prompt.points:
            cv2.circle(near, (int(x), int(y)), min(self.size) // 32, 1, -1)
        return np.where(near.view(bool), self.target, mask)


def ours(
    instance: Instance, session: Improving, model: Any, courses: Sequence[Course]
) -> tuple[float, Trajectories, list[Any]]:
    """Seconds of our side, the trajectories, and what was asked and answered in each round."""
    playing = simulate_clicks(instance, courses, model, Rules(rounds=ROUNDS))
    asked: list[Any] = []
    seconds = 0.0
    answers: list[Prompted] | None = None
    while True:
        start = time.process_time()
        try:
            prompts = next(playing) if answers is None else playing.send(answers)
        except StopIteration as end:
            return seconds + time.process_time() - start, end.value, asked
        seconds += time.process_time() - start
        answers = session.predict(prompts)
        asked.append((prompts, answers))


def literal(
    target: Mask, mask: Mask, clicked: NDArray[np.int64], model: Any, low: float | None
) -> tuple[int, int, bool]:
    """One click and the counts, over the whole frame, word by word; returns row, column and sign."""
    missing, surplus = target & ~mask, mask & ~target
    depths = []
    for error in (missing, surplus):
        padded = np.pad(error.astype(np.uint8), 1)
        depth = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1].copy()
        depth[clicked[:, 0], clicked[:, 1]] = 0
        depths.append(depth)
    positive = bool(depths[0].max() > depths[1].max())
    error, depth = (missing, depths[0]) if positive else (surplus, depths[1])
    if low is None:
        row, column = np.unravel_index(int(depth.argmax()), depth.shape)
        return int(row), int(column), positive
    if model == "distance":
        chances = cv2.distanceTransform(error.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE).astype(np.float64)
    else:
        chances = error.astype(np.float64)
    chances *= error
    chances[clicked[:, 0], clicked[:, 1]] = 0
    chances /= chances.sum()
    ascending = np.sort(chances, axis=None)
    mass = np.cumsum(ascending)
    first = np.searchsorted(mass, low * mass[-1], side="left")
    last = min(np.searchsorted(mass, (low + 0.1) * mass[-1], side="right"), len(mass) - 1)
    group = np.where((chances >= ascending[first]) & (chances <= ascending[last]), chances, 0).ravel()
    spot = int(np.searchsorted(np.cumsum(group), 0.5 * group.sum(), side="right"))
    return *divmod(spot, target.shape[1]), positive


def full_frame(instance: Instance, asked: list[Any], courses: Sequence[Course], model: str) -> tuple[float, int, int]:
    """Seconds of the full-frame way over all clicks of all rounds, how many clicks, and how many centres agree."""
    masks = [np.zeros(instance.shape, bool) for _ in courses]
    seconds, agree, count = 0.0, 0, 0
    for prompts, answers in asked:
        assert len(prompts) == len(courses)  # the segmenter is never perfect
        for place, (course, prompt, answer) in enumerate(zip(courses, prompts, answers, strict=True)):
            points = prompt.points.astype(np.int64)[:, ::-1]
            start = time.process_time()
            row, column, sign = literal(instance.target, masks[place], points[:-1], model, course.low)
            union = int((instance.target | answer.mask).sum())
            intersection = int((instance.target & answer.mask).sum())
            seconds += time.process_time() - start
            assert 0 < intersection < union
            agree += course.low is None and (row, column, sign) == (*points[-1], prompt.positive[-1])
            masks[place] = answer.mask
            count += 1
    return seconds, count, agree


def main() -> None:
    set_thread_variables(1)
    click_distances.main()
    print_encodings()
    time_courses()


def print_encodings() -> None:
    """How often a run opens an image: counted by the run itself."""
    records = InMemoryRun("rclicks", {"scenes": 4, "rounds": 5, "resamples": 0}).records("disc", {"fragility": 1.0})
    images = records["image"].n_unique()
    print(f"encodings an image: {records['opened'].sum() / images:g} (target exactly 1)")


def time_courses() -> None:
    pin_threads(1)
    for height, width, most in SIZES:
        session = Improving(height, width)
        image = np.zeros((height, width, 3), np.uint8)
        instance = Instance("bench", "one", image, session.target, np.zeros((height, width), bool))
        for name in ("uniform", "distance"):
            model = build(name, "click-model")
            ours(instance, session, model, COURSES[:2])  # compiles
            took, found, asked = ours(instance, session, model, COURSES)
            theirs, count, agree = full_frame(instance, asked, COURSES, name)
            mine, other = 1e3 * took / count, 1e3 * theirs / count
            iou = (found.intersection / found.union).mean(axis=0)
            print(
                f"{height} x {width}, object {session.target.mean():.0%} of the frame, {name} clicks, {count} clicks,"
            )
            print(f"  mean IoU {iou[0]:.2f} to {iou[-1]:.2f}, {agree} of {ROUNDS} centres as OpenCV's:", end=" ")
            print(f"{mine:.2f} ms a course and click (target {most:g} ms: {verdict(mine <= most)});", end=" ")
            ratio = other / mine
            print(
                f"full frame {other:.1f} ms; ratio {ratio:.1f} (target {RATIO:g}x: {verdict(ratio >= RATIO)})",
                flush=True,
            )


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
