"""Plays driven together: the same results in any company, one thread for the model, errors that leave cleanly."""

import threading
import weakref

import numpy as np
import pytest
from click_scenes import Recorder, instances, same

from hardlook.errors import ModelError
from hardlook.models.planted.disc import Disc
from hardlook.models.roles import Clicks, Prompted
from hardlook.rclicks.click_models.simple import Distance
from hardlook.rclicks.clicks.courses import BASE, Rules, make_clicking_groups
from hardlook.rclicks.clicks.simulation import simulate_clicks, simulate_first_clicks
from hardlook.rclicks.clicks.simulation_runner import run_simulations

COURSES = (BASE, *make_clicking_groups(10))

RULES = Rules(rounds=5)

MODEL = Disc(fragility=1.0, blunt=0.5)


def plays(chosen):
    return [(MODEL.open(one.image), simulate_clicks(one, COURSES, Distance(), RULES)) for one in chosen]


@pytest.fixture(scope="module")
def alone():
    chosen = instances(5)
    return chosen, [run_simulations(plays([one]), overlap=False)[0] for one in chosen]


@pytest.mark.parametrize("prompts_per_call", [1, 4, 11, 64])
@pytest.mark.parametrize("overlap", [False, True])
def test_company_order_and_calls_change_nothing(alone, prompts_per_call, overlap):
    chosen, expected = alone
    for order in (np.arange(5), np.array([3, 1, 4, 0, 2])):
        found = run_simulations(plays([chosen[i] for i in order]), prompts_per_call=prompts_per_call, overlap=overlap)
        assert all(same(found[place], expected[i]) for place, i in enumerate(order))


@pytest.mark.parametrize("max_active", [1, 2, 9])
def test_how_many_are_under_way_changes_nothing(alone, max_active):
    chosen, expected = alone
    assert all(map(same, run_simulations(plays(chosen), max_active=max_active), expected))


@pytest.mark.parametrize("overlap", [False, True])
def test_batches_are_a_play_s_own_and_of_limited_size(alone, overlap):
    chosen, _ = alone
    recorders = [Recorder(MODEL.open(one.image)) for one in chosen]
    started = [(one, simulate_clicks(i, COURSES, Distance(), RULES)) for one, i in zip(recorders, chosen, strict=True)]
    run_simulations(started, prompts_per_call=4, overlap=overlap)
    for recorder in recorders:
        sizes = [len(batch) for batch in recorder.batches]
        rounds = [{len(prompt.points) for prompt in batch} for batch in recorder.batches]
        assert sizes[:3] == [4, 4, 3]
        assert max(sizes) <= 4
        assert all(len(number) == 1 for number in rounds)
        mine = threading.current_thread().name
        assert len(recorder.threads) == 1
        assert (recorder.threads == {mine}) == (not overlap)


@pytest.mark.parametrize("overlap", [False, True])
def test_plays_of_one_image_share_one_session_which_is_let_go(alone, overlap):
    chosen, expected = alone
    opened, gone = [], []

    def opening(instance):
        def open_once():
            opened.append(instance.name)
            recorder = Recorder(MODEL.open(instance.image))
            gone.append(weakref.ref(recorder))
            return recorder

        return open_once

    sources = {one.name: opening(one) for one in chosen[:2]}
    started = []
    for one in chosen[:2]:
        points = np.argwhere(one.target)[:3, ::-1]
        started.append((sources[one.name], simulate_clicks(one, COURSES, Distance(), RULES)))
        started.append((sources[one.name], simulate_first_clicks(one, points)))
    found = run_simulations(started, overlap=overlap)
    assert sorted(opened) == sorted(one.name for one in chosen[:2])
    assert all(one() is None for one in gone)
    assert same(found[0], expected[0])
    assert found[3].union.shape == (3,)


class Blank:
    def predict(self, prompts):
        return [Prompted(np.zeros((1, 1), bool)) for _ in prompts]


def noted(name, rounds, notes):
    """A simulation that notes its start and its end."""
    notes.append(("start", name))
    for _ in range(rounds):
        yield [Clicks(np.zeros((1, 2), np.float32), np.ones(1, bool))]
    notes.append(("end", name))
    return name


@pytest.mark.parametrize("max_active", [1, 2, 3])
def test_as_many_are_under_way_as_allowed_with_overlap_and_one_without(max_active):
    for overlap, most in ((True, max_active), (False, 1)):
        notes = []
        started = [(Blank(), noted(name, 2, notes)) for name in range(5)]
        assert run_simulations(started, overlap=overlap, max_active=max_active) == [0, 1, 2, 3, 4]
        assert notes[:most] == [("start", name) for name in range(most)]
        under_way = np.cumsum([1 if what == "start" else -1 for what, _ in notes])
        assert under_way.max() == most
        assert [name for what, name in notes if what == "start"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("overlap", [False, True])
def test_a_session_is_let_go_before_the_next_image_is_opened(overlap):
    opened, alive = [], []

    def opening():
        def open_once():
            alive.append(sum(one() is not None for one in opened))
            session = Blank()
            opened.append(weakref.ref(session))
            return session

        return open_once

    sources = [opening() for _ in range(3)]
    started = [(source, noted(name, 2, [])) for source in sources for name in range(2)]
    run_simulations(started, overlap=overlap, max_active=1)
    assert alive == [0, 0, 0]


class Failing:
    """Fails at a given call; the loop must carry the error out of the simulate_clicks it belongs to."""

    def __init__(self, session, calls, error):
        self.session, self.calls, self.error = session, calls, error

    def predict(self, prompts):
        self.calls -= 1
        if self.calls < 0:
            raise self.error
        return self.session.predict(prompts)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("error", [ModelError("out of memory"), RuntimeError("out of memory")])
def test_a_failing_call_leaves_from_its_play_and_all_is_closed(alone, overlap, error):
    chosen, _ = alone
    started = plays(chosen)
    started[2] = (Failing(started[2][0], 2, error), started[2][1])
    before = threading.active_count()
    with pytest.raises(type(error), match="out of memory") as caught:
        run_simulations(started, overlap=overlap)
    if isinstance(error, ModelError):
        assert caught.value.unit == chosen[2].name
    assert threading.active_count() == before
    assert all(playing.gi_frame is None for _, playing in started)


@pytest.mark.parametrize("overlap", [False, True])
def test_a_session_that_cannot_be_opened_and_a_broken_click_model(alone, overlap):
    chosen, _ = alone

    def cannot():
        raise ModelError("no weights")

    with pytest.raises(ModelError, match="no weights"):
        run_simulations([(cannot, simulate_clicks(chosen[0], COURSES, Distance(), RULES))], overlap=overlap)

    class Wrong:
        def click_map(self, image, target, error, positive):
            return np.full(error.shape, np.nan)

    with pytest.raises(ModelError, match="click model Wrong"):
        run_simulations(
            [*plays(chosen[:1]), (cannot, simulate_clicks(chosen[1], COURSES, Wrong(), RULES))], overlap=overlap
        )


def test_nothing_to_do_and_nonsense():
    assert run_simulations([]) == []
    assert run_simulations([], overlap=False) == []
    with pytest.raises(ValueError, match="at least 1 prompt per call"):
        run_simulations([], prompts_per_call=0)
