"""CFR-ICL: courses of its predictor against a loop that was written from its paper and the released code's facts alone.

Sun et al., CFR-ICL: Cascade-Forward Refinement with Iterative Click Loss for Interactive Image Segmentation, AAAI 2024:
the first clicks are answered several times, and each answer is the previous mask of the next.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from hardlook.networks.interactive.checkpoints import fit_to_noise
from hardlook.networks.interactive.predictor_settings import PUBLISHED, Cascade
from hardlook.networks.interactive.predictors import Course, Predictor
from hardlook.networks.interactive.simpleclick import SimpleClick

CLICKS = [(50, 60, True), (20, 100, False), (70, 90, True), (9, 9, True), (84, 40, False)]


class SmallNetwork:
    """SimpleClick of one narrow block with random parameters, and hills at clicks, so that crops follow these."""

    with_prev_mask = True

    def __init__(self):
        torch.manual_seed(8)
        self.network = SimpleClick(patch=16, width=8, depth=1, heads=2, side=64, pyramid=(4, 4, 4, 4), head_width=4)
        fit_to_noise(self.network)
        self.network.double()
        self.calls = 0

    def __call__(self, inputs, points):
        self.calls += 1
        logits = self.network(inputs, points)["instances"].tanh() - 3 + 2 * inputs[:, 3:4]
        rows, columns = torch.arange(inputs.shape[2])[:, None], torch.arange(inputs.shape[3])
        for item, listed in enumerate(points.tolist()):
            for place, (row, column, order) in enumerate(listed):
                if order >= 0:
                    far = ((rows - row) / inputs.shape[2]) ** 2 + ((columns - column) / inputs.shape[3]) ** 2
                    hill = 8 * torch.exp(-far / 0.01)
                    logits[item, 0] += hill if place < len(listed) // 2 else -hill
        return logits


@pytest.fixture(scope="module")
def network():
    with torch.inference_mode():
        yield SmallNetwork()


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(4).integers(0, 256, (96, 128, 3)).astype(np.uint8)


def resize(maps, size):
    return functional.interpolate(maps, size=size, mode="bilinear", align_corners=True)


def find_crop(previous, clicks, stored, min_crop):
    """The crop of SimpleClick's zoom-in, first and last row and column."""
    height, width = previous.shape
    mask = (previous > 0.5).numpy()
    if mask.any():
        for row, column, positive in clicks:
            mask[row, column] |= positive
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        fresh = []
        for inside, length in ((rows, height), (columns, width)):
            middle, side = (inside[0] + inside[-1]) / 2, max(1.4 * (inside[-1] - inside[0] + 1), min_crop)
            fresh += [max(0, round(middle - side / 2)), min(length - 1, round(middle + side / 2))]
    else:
        fresh = [0, height - 1, 0, width - 1]
    if stored is None:
        return fresh
    overlap = 1.0
    for axis in (0, 2):
        one, other = set(range(fresh[axis], fresh[axis + 1] + 1)), set(range(stored[axis], stored[axis + 1] + 1))
        # Of the interval around both, as the released code has it.
        overlap *= len(one & other) / (max(one | other) - min(one | other) + 1)
    outside = any(
        positive and not (stored[0] <= row < stored[1] and stored[2] <= column < stored[3])
        for row, column, positive in clicks
    )
    return fresh if outside or overlap < 0.5 else stored


def predict_once(network, picture, previous, clicks, crop, side):
    """Probabilities (H, W) of one pass: crop, resize, mirror, average logits, sigmoid, back into a map of zeros."""
    top, bottom, left, right = crop
    tall, wide = bottom - top + 1, right - left + 1
    whole = torch.cat([picture, previous[None]])[None]
    shown = resize(whole[:, :, top : bottom + 1, left : right + 1], (side, side))
    count = max(sum(sign for *_, sign in clicks), sum(not sign for *_, sign in clicks))
    points = torch.full((2, 2 * count, 3), -1.0)
    used = {True: 0, False: count}
    for order, (row, column, sign) in enumerate(clicks):
        row, column = (row - top) * side / tall, (column - left) * side / wide
        points[0, used[sign]] = torch.tensor([row, column, order])
        points[1, used[sign]] = torch.tensor([row, side - column - 1, order])
        used[sign] += 1
    logits = network(torch.cat([shown, shown.flip(3)]), points)
    logits = (logits[0] + logits[1].flip(2)) / 2
    result = torch.zeros_like(previous)
    result[top : bottom + 1, left : right + 1] = resize(logits.sigmoid()[None], (tall, wide))[0, 0]
    return result


def play_by_hand(network, picture, clicks, *, side, min_crop, first=1, more=1, until=None):
    """All maps (clicks, H, W), crops and numbers of passes; the first `first` clicks are answered `more` times more."""
    previous, crop = torch.zeros(picture.shape[1:], dtype=picture.dtype), None
    maps, crops, passes = [], [], []
    for number in range(1, len(clicks) + 1):
        seen, done = clicks[:number], 0
        for _ in range(1 + (more if number <= first else 0)):
            crop = find_crop(previous, seen, crop, min_crop)
            before, previous = previous, predict_once(network, picture, previous, seen, crop, side)
            done += 1
            if until is not None and done > 1 and int(((before > 0.49) != (previous > 0.49)).sum()) <= until:
                break
        maps.append(previous)
        crops.append(tuple(crop))
        passes.append(done)
    return torch.stack(maps), crops, passes


@pytest.mark.parametrize(
    ("side", "min_crop", "cascade"),
    [
        (448, 200, Cascade()),
        (64, 30, Cascade()),
        (64, 30, Cascade(clicks=3, passes=2)),
        (64, 30, Cascade(clicks=5, passes=6, adaptive=20)),
        (64, 30, Cascade(clicks=5, passes=6, adaptive=200)),
    ],
)
def test_a_course_is_the_loop_by_hand(network, image, side, min_crop, cascade):
    published = PUBLISHED["cfr-icl"]
    assert published.cascade == Cascade(1, 1, None) and published.zoom == PUBLISHED["simpleclick"].zoom
    settings = replace(published, cascade=cascade, zoom=replace(published.zoom, target=(side, side), min_crop=min_crop))
    opened = Predictor(network, settings).open(image, dtype=torch.float64)
    clicks = CLICKS[:2] if side == 448 else CLICKS
    network.calls, state, maps, crops, passes = 0, None, [], [], []
    for count in range(1, len(clicks) + 1):
        before = network.calls
        (state,) = opened.predict([Course(clicks[:count], state)])
        maps.append(state.probabilities)
        crops.append(state.crop)
        passes.append(network.calls - before)
    hand = play_by_hand(
        network, opened.picture, clicks, side=side, min_crop=min_crop, first=cascade.clicks, more=cascade.passes,
        until=cascade.adaptive,
    )  # fmt: skip
    assert (crops, passes) == hand[1:]
    assert (torch.stack(maps) - hand[0]).abs().max() < 1e-12
    if side == 64:
        assert len(set(crops)) > 1, "crops change between clicks"
    if cascade.adaptive == 200:
        assert 2 <= min(passes) < max(passes), "some clicks are refined for longer than others"


def test_another_pass_changes_the_answer(network, image):
    """A predictor that forgot the cascade, or the answer that is fed back, would be seen."""
    picture = torch.from_numpy(image).permute(2, 0, 1).double() / 255
    once, twice = (play_by_hand(network, picture, CLICKS[:1], side=64, min_crop=30, more=more)[0] for more in (0, 1))
    assert (once - twice).abs().max() > 0.05


class Growing:
    """Each answer has two pixels more than the one before."""

    with_prev_mask = True

    def __init__(self):
        self.calls = 0

    def __call__(self, inputs, points):
        self.calls += 1
        logits = torch.full_like(inputs[:, :1], -2)
        logits.flatten(1)[:, : 2 * self.calls] = 2
        return logits


@pytest.mark.parametrize(("adaptive", "calls"), [(1, 6), (2, 2), (3, 2)])
def test_refinement_ends_where_at_most_so_many_pixels_change(image, adaptive, calls):
    network = Growing()
    settings = replace(PUBLISHED["cfr-icl"], zoom=None, flip=False, cascade=Cascade(1, 5, adaptive))
    Predictor(network, settings).open(image).predict([Course(CLICKS[:1])])
    assert network.calls == calls
