"""Sections 4 and 5 of the specification written out over whole frames, against courses on random small masks.

The oracle knows the clicks that were made and nothing of how they were found: it makes the masks again from the clicks
before, works out where the next click may be, and looks whether it is there.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage
from scipy.stats import chisquare

from hardlook.models.roles import Prompted
from hardlook.rclicks.click_models.simple import Center, Distance, Uniform
from hardlook.rclicks.clicks.courses import BASE, HALVES, Course, Instance, Rules, make_clicking_groups
from hardlook.rclicks.clicks.simulation import simulate_clicks, simulate_first_clicks
from hardlook.rclicks.clicks.simulation_runner import run_simulations

COURSES = (BASE, *make_clicking_groups(10), *HALVES)

SLACK = 1e-12  # bounds that meet a sum of masses exactly may fall to either side of it in float64


def depths(error, clicked):
    """Squared distances, whole numbers, to the background and the frame's outside; 0 at clicked pixels."""
    distance = ndimage.distance_transform_edt(np.pad(error, 1))[1:-1, 1:-1]
    return np.where(clicked, 0, np.rint(distance**2).astype(int))


def wanted_click(target, ignore, mask, clicked):
    """Sign, error region, and centre (row, column) of the next click; None where nothing can be clicked."""
    missing, surplus = target & ~mask & ~ignore, mask & ~target & ~ignore
    deep, shallow = depths(missing, clicked), depths(surplus, clicked)
    if max(deep.max(), shallow.max()) == 0:
        return None
    positive = bool(deep.max() > shallow.max())
    chosen = deep if positive else shallow
    return positive, missing if positive else surplus, tuple(np.argwhere(chosen == chosen.max())[0])


def threshold_group(chances, low, high):
    """The pixels that a group may click, as the sorted probabilities of the whole frame say."""
    ascending = np.sort(chances.ravel().astype(np.float64))
    mass = np.cumsum(ascending)
    total = mass[-1]
    first = np.flatnonzero(mass >= (low - SLACK) * total)[0]
    beyond = np.flatnonzero(mass > (high + SLACK) * total)
    last = beyond[0] if len(beyond) else len(mass) - 1
    return (chances >= ascending[first]) & (chances <= ascending[last]) & (chances > 0)


def exact_group(chances, low, high):
    """The pixels whose stretch of mass meets the bin's; for maps without ties, whose order is the only one."""
    order = np.argsort(chances, axis=None)
    ends = np.cumsum(chances.ravel()[order])
    starts, total = ends - chances.ravel()[order], ends[-1]
    meets = np.zeros(chances.size, bool)
    meets[order] = (starts <= (high + SLACK) * total) & (ends >= (low - SLACK) * total)
    return meets.reshape(chances.shape) & (chances > 0)


class Patchy:
    """A map of the whole frame, other for each sign, without ties; a share of the frame has no chance."""

    def __init__(self, shape, silent, seed):
        rng = np.random.default_rng(seed)
        values = rng.permutation(2 * shape[0] * shape[1]).reshape(2, *shape) + 1.0
        self.maps = np.where(rng.random(values.shape) < silent, 0.0, values**2)

    def click_map(self, image, target, error, positive):
        return self.maps[int(positive)]


def from_inside(error):
    """The distance of the error's pixels without a border at the frame; all alike where there is no background."""
    return np.ones(error.shape) if error.all() else np.sqrt(np.rint(ndimage.distance_transform_edt(error) ** 2))


def only_centre(error):
    return np.arange(error.size).reshape(error.shape) == depths(error, error & False).argmax()


def click_model(name, shape, seed):
    """A click model and, written out, its map of an error and a sign."""
    if name == "patchy":
        patchy = Patchy(shape, (0.0, 0.5, 0.9)[seed % 3], seed)
        return patchy, lambda error, positive: patchy.maps[int(positive)]
    model, plainly = {
        "uniform": (Uniform, np.ones_like), "distance": (Distance, from_inside), "center": (Center, only_centre),
    }[name]  # fmt: skip
    return model(), lambda error, positive: plainly(error).astype(float)


@dataclass
class Fake:
    """A segmenter whose mask depends on the clicks alone, in one of four ways; it keeps what it was asked."""

    kind: str
    target: np.ndarray
    seed: int
    asked: list = field(default_factory=list)

    def mask(self, clicks):
        """The mask after `clicks`, each (x, y, positive)."""
        clicks = [(int(x), int(y), bool(positive)) for x, y, positive in clicks]
        key = [] if self.kind == "stubborn" else np.ravel(clicks).astype(int).tolist()
        rng = np.random.default_rng([self.seed, *key])
        if self.kind == "nearly":
            return self.target ^ (rng.random(self.target.shape) < rng.choice([0.0, 0.05, 0.3]))
        if self.kind != "discs":
            return rng.random(self.target.shape) < 0.5
        rows, columns = np.indices(self.target.shape)
        found = np.zeros(self.target.shape, bool)
        for x, y, positive in clicks:
            found[(rows - y) ** 2 + (columns - x) ** 2 <= 5] = positive
        return found

    def predict(self, prompts):
        answers = []
        for prompt in prompts:
            clicks = [(*point, sign) for point, sign in zip(prompt.points, prompt.positive, strict=True)]
            assert prompt.state == (len(clicks) - 1 or None)
            self.asked.append(tuple((int(x), int(y), bool(sign)) for x, y, sign in clicks))
            answers.append(Prompted(self.mask(clicks), len(clicks)))
        return answers


@st.composite
def scenes(draw):
    """Target and ignored pixels: random blocks of one to three pixels, so that depths and ties are many."""
    block = draw(st.integers(1, 3))
    shape = draw(st.tuples(st.integers(1, 12 // block), st.integers(1, 12 // block)))
    target, ignore = (np.kron(draw(arrays(bool, shape)), np.ones((block, block), bool)) for _ in range(2))
    ignore &= draw(st.booleans())
    target.flat[draw(st.integers(0, target.size - 1))] = True
    return target, ignore & ~target if not (target & ~ignore).any() else ignore


def instance_of(target, ignore, name="one"):
    return Instance("drawn", name, np.zeros((*target.shape, 3), np.uint8), target, ignore)


def check_course(place, course, played, fake, ignore, chance_map, rules):
    """Every round of one course; its clicks and how many of them fell back to the centre."""
    target, group_of = fake.target, threshold_group if rules.groups == "threshold" else exact_group
    mask, clicked = np.zeros(target.shape, bool), np.zeros(target.shape, bool)
    clicks, fallbacks, counts = [], 0, None
    for number in range(rules.rounds):
        x, y, positive = (values[place, number] for values in (played.x, played.y, played.positive))
        wanted = wanted_click(target, ignore, mask, clicked)
        if wanted is None and rules.perfect == "ours":
            assert (x, y, positive) == (-1, -1, False)
            assert (played.intersection[place, number], played.union[place, number]) == counts
            continue
        if wanted is None:
            assert (x, y, positive) == (0, 0, False)
        else:
            sign, error, centre = wanted
            assert positive == sign
            chances = chance_map(error, sign) * error * ~clicked
            draws = course.low is not None and chances.sum() > 0
            fallbacks += course.low is not None and not draws
            if draws:
                assert group_of(chances, course.low, course.high)[y, x]
            else:
                assert (y, x) == centre
        clicked[y, x] = True
        clicks.append((int(x), int(y), bool(positive)))
        mask = fake.mask(clicks)
        counts = (int((mask & target & ~ignore).sum()), int(((mask | target) & ~ignore).sum()))
        assert (played.intersection[place, number], played.union[place, number]) == counts
    assert (played.x[place] >= 0).sum() == len(clicks)
    assert (played.last[place] == mask).all()
    return clicks, fallbacks


@settings(max_examples=40)
@given(
    scenes(),
    st.sampled_from(["discs", "random", "nearly", "stubborn"]),
    st.sampled_from(["uniform", "distance", "center", "patchy", "patchy exactly"]),
    st.sampled_from(["ours", "released"]),
    st.integers(0, 999),
)
def test_every_click_is_where_the_words_allow_it(scene, kind, clicking, perfect, seed):
    (target, ignore), (name, *exactly) = scene, clicking.split()
    rules = Rules(rounds=6, perfect=perfect, groups="exact" if exactly else "threshold", seed=seed)
    model, chance_map = click_model(name, target.shape, seed)
    fake = Fake(kind, target, seed)
    playing = simulate_clicks(instance_of(target, ignore), COURSES, model, rules)
    [played] = run_simulations([(fake, playing)], prompts_per_call=(1, 4, 64)[seed % 3], overlap=False)
    checked = [check_course(c, course, played, fake, ignore, chance_map, rules) for c, course in enumerate(COURSES)]
    # The network was asked for each course and click once, with all the clicks so far.
    prompts = [tuple(clicks[: k + 1]) for clicks, _ in checked for k in range(len(clicks))]
    assert sorted(fake.asked) == sorted(prompts)
    if perfect == "ours":
        assert played.fallbacks == sum(fallbacks for _, fallbacks in checked)
    firsts = [fake.mask(clicks[:1]) for clicks, _ in checked[1:11]]  # of the ten groups
    assert played.first_mean == pytest.approx(np.mean(firsts, axis=0), abs=1e-6)


@settings(max_examples=20)
@given(scenes(), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=6))
def test_peoples_first_clicks_are_positive_and_counted_without_ignored_pixels(scene, points):
    target, ignore = scene
    points = [(x % target.shape[1], y % target.shape[0]) for x, y in points]
    fake = Fake("random", target, 7)
    [tried] = run_simulations([(fake, simulate_first_clicks(instance_of(target, ignore), points))], overlap=False)
    masks = [fake.mask([(x, y, True)]) for x, y in points]
    assert fake.asked == [((x, y, True),) for x, y in points]
    assert tried.intersection.tolist() == [(mask & target & ~ignore).sum() for mask in masks]
    assert tried.union.tolist() == [((mask | target) & ~ignore).sum() for mask in masks]
    assert tried.mean_mask == pytest.approx(np.mean(masks, axis=0), abs=1e-6)


def test_draws_are_in_proportion_and_streams_are_independent():
    """Four single pixels with chances 1 to 4 on many instances; the worked groups of section 5."""
    target = np.array([[1, 0, 1, 0, 1, 0, 1]], bool)
    model = Patchy(target.shape, 0, 0)
    model.maps = np.array([[[0.0] * 7], [[1, 9, 2, 9, 3, 9, 4]]])
    courses = (*make_clicking_groups(10), Course("one", 0.0, 1.0), Course("other", 0.0, 1.0))
    nothing = Fake("discs", target, 0)
    nothing.mask = lambda clicks: target & False
    plays = [
        (nothing, simulate_clicks(instance_of(target, target & False, f"n{number}"), courses, model, Rules(rounds=2)))
        for number in range(300)
    ]
    # The chance of each clicked pixel: (instances, courses, rounds).
    drawn = np.array([played.x // 2 + 1 for played in run_simulations(plays, overlap=False)])
    worked = [(1, 2)] * 2 + [(2, 3)] * 2 + [(3,)] + [(3, 4)] * 2 + [(4,)] * 3
    for place, members in enumerate(worked):
        assert set(drawn[:, place, 0]) == set(members)
        counts = [(drawn[:, place, 0] == value).sum() for value in members]
        if len(members) > 1:
            assert chisquare(counts, [300 * value / sum(members) for value in members]).pvalue > 1e-3
    # Two courses with the same bounds know nothing of each other; a second click knows only that the first is taken.
    pairs = [(a, b) for a in range(1, 5) for b in range(1, 5)]
    both = [(drawn[:, 10:, 0] == pair).all(1).sum() for pair in pairs]
    assert chisquare(both, [300 * a * b / 100 for a, b in pairs]).pvalue > 1e-3
    pairs = [(a, b) for a, b in pairs if a != b]
    both = [(drawn[:, 10] == pair).all(1).sum() for pair in pairs]
    assert chisquare(both, [300 * a / 10 * b / (10 - a) for a, b in pairs]).pvalue > 1e-3
