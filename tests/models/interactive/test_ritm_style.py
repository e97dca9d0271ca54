"""The adapter gives the masks of a predictor that runs each trajectory alone, also when trajectories alternate."""

import numpy as np
import pytest
import ritm_predictors
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.errors import ModelError, OptionError
from hardlook.models.conformance import check_named
from hardlook.models.interactive.ritm_style import FAMILIES, ClickList, PredictorClick, RitmStyle, find_settings
from hardlook.models.registry import build
from hardlook.models.roles import Clicks

STATEFUL = ("Zooming", "Forgetful", "Scribbling", "Fading")

ALL = (*STATEFUL, "Remembering")


def target_of(attribute):
    return f"{ritm_predictors.__name__}:{attribute}"


def picture(seed, shape=(20, 26)):
    return np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)


def trajectory(seed, rounds=6, shape=(20, 26)):
    rng = np.random.default_rng(seed)
    points = np.stack([rng.integers(0, shape[1], rounds), rng.integers(0, shape[0], rounds)], axis=1)
    return points.astype(np.float32), rng.random(rounds) < 0.7


def predict_alone(kind, image, points, positive, twice=False):
    """Masks as RITM's own evaluation makes them: one predictor, one trajectory, one click after the other."""
    predictor = getattr(ritm_predictors, kind)()
    predictor.set_input_image(image.copy())
    masks, clicks = [], []
    for number, ((x, y), sign) in enumerate(zip(points, positive, strict=True)):
        clicks.append(PredictorClick(bool(sign), (int(y), int(x)), number))
        for _ in range(2 if twice and number == 0 else 1):
            probability = predictor.get_prediction(ClickList(tuple(clicks)))
        masks.append(probability > 0.49)
    return masks


def predict_in_turns(model, trajectories, order):
    """The masks of all trajectories; `order` gives the trajectory of each click. One session per image."""
    sessions = {}
    states, masks = [None] * len(trajectories), [[] for _ in trajectories]
    for index in order:
        image, points, positive = trajectories[index]
        session = sessions.setdefault(id(image), model.open(image))
        count = len(masks[index]) + 1
        if count > len(points):
            continue
        [answer] = session.predict([Clicks(points[:count], positive[:count], states[index])])
        states[index] = answer.state
        masks[index].append(answer.mask)
    return masks


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=5)
@given(st.lists(st.integers(0, 2), min_size=10, max_size=18), st.booleans(), st.booleans())
def test_alternating_trajectories_equal_those_run_alone(kind, order, twice, replay):
    first, second = picture(1), picture(2)
    trajectories = [(image, *trajectory(seed)) for seed, image in enumerate((first, first, second))]
    model = RitmStyle(target_of(kind), first_click_twice=twice, replay=replay)
    for index, masks in enumerate(predict_in_turns(model, trajectories, order)):
        alone = predict_alone(kind, *trajectories[index], twice=twice)
        assert len(masks) == min(order.count(index), 6)
        assert all(np.array_equal(mask, expected) for mask, expected in zip(masks, alone[: len(masks)], strict=True))


@pytest.mark.parametrize("kind", STATEFUL)
def test_the_predictors_memory_matters(kind):
    image, (points, positive) = picture(1), trajectory(4)
    [fresh] = RitmStyle(target_of(kind)).open(image).predict([Clicks(points, positive)])
    predictor = getattr(ritm_predictors, kind)()
    predictor.set_input_image(image.copy())
    signed = enumerate(zip(points, positive, strict=True))
    clicks = tuple(PredictorClick(bool(sign), (int(y), int(x)), number) for number, ((x, y), sign) in signed)
    at_once = predictor.get_prediction(ClickList(clicks)) > 0.49
    assert np.array_equal(fresh.mask, predict_alone(kind, image, points, positive)[-1])
    assert not np.array_equal(fresh.mask, at_once)


def test_states_avoid_the_replay():
    image, (points, positive) = picture(1), trajectory(0)
    calls = {}
    for replay in (False, True):
        model = RitmStyle(target_of("Zooming"), replay=replay)
        predict_in_turns(model, [(image, points, positive)], [0] * 6)
        calls[replay] = model._predictor._predictor.calls
    assert calls == {False: 6, True: 1 + 2 + 3 + 4 + 5 + 6}


@pytest.mark.parametrize("kind", STATEFUL)
def test_prompts_may_be_repeated_but_states_must_fit_their_clicks(kind):
    image, (points, positive) = picture(1), trajectory(5)
    session = RitmStyle(target_of(kind)).open(image)
    [first] = session.predict([Clicks(points[:2], positive[:2])])
    prompt = Clicks(points[:4], positive[:4], first.state)
    one, two = session.predict([prompt, prompt])
    assert np.array_equal(one.mask, two.mask)
    assert np.array_equal(one.mask, predict_alone(kind, image, points[:4], positive[:4])[-1])
    with pytest.raises(ModelError, match="earlier clicks"):
        session.predict([Clicks(points[2:5], positive[2:5], first.state)])


@pytest.mark.parametrize("kind", ALL)
def test_it_keeps_its_contract(kind):
    findings = check_named("ritm-style", "promptable-segmenter", {"predictor": target_of(kind)})
    assert [finding.line() for finding in findings if not finding.passed] == []


def test_the_threshold_and_the_order_of_colours():
    image = np.zeros((1, 2, 3), np.uint8)
    image[0] = (100, 0, 0), (0, 0, 200)
    click = Clicks(np.zeros((1, 2), np.float32), np.ones(1, bool))

    def predict_mask(**options):
        return RitmStyle(target_of("Channels"), **options).open(image).predict([click])[0].mask.tolist()

    assert predict_mask() == [[False, False]] and predict_mask(threshold=0.3) == [[True, False]]
    assert predict_mask(colours="bgr") == [[False, True]]


def test_without_clicks_the_mask_is_empty():
    [answer] = (
        RitmStyle(target_of("Zooming")).open(picture(0)).predict([Clicks(np.zeros((0, 2), np.float32), np.zeros(0))])
    )
    assert answer.mask.shape == (20, 26) and not answer.mask.any()


def test_arguments_weights_and_identity(tmp_path):
    checkpoint = tmp_path / "weights.pth"
    checkpoint.write_bytes(b"0")
    plain = build(
        "ritm-style", "promptable-segmenter", {"predictor": target_of("zooming"), "predictor_args": "width=2.5"}
    )
    written = f'{{"width": 2.5, "checkpoint": "{checkpoint.as_posix()}"}}'
    heavy = RitmStyle(target_of("zooming"), written)
    assert plain._predictor._predictor.width == heavy._predictor._predictor.width == 2.5
    assert (plain.weights_files, heavy.weights_files) == ((), (checkpoint,))
    assert plain.device == "cpu" and plain.fingerprint() == heavy.fingerprint()
    assert "no encoding shared" in plain.conduct and "states given back" in plain.conduct


def test_gradients_are_off():
    torch = pytest.importorskip("torch")
    click = Clicks(np.zeros((1, 2), np.float32), np.ones(1, bool))
    assert torch.is_grad_enabled()
    assert not RitmStyle(target_of("Torches")).open(picture(0)).predict([click])[0].mask.any()


def test_families_are_those_of_the_table():
    assert set(FAMILIES) == {"ritm", "simpleclick", "adaptiveclick", "cfr-icl", "cdnet", "gpcis"}
    assert {settings.threshold for settings in FAMILIES.values()} == {0.49}
    assert [name for name, settings in FAMILIES.items() if settings.first_click_twice] == ["cfr-icl"]
    sizes = {name: (settings.size, settings.davis_size) for name, settings in FAMILIES.items()}
    assert sizes["ritm"] == sizes["cdnet"] == sizes["gpcis"] == (400, 600)
    assert sizes["simpleclick"] == sizes["adaptiveclick"] == sizes["cfr-icl"] == (448, 672)
    assert "predicted twice" in RitmStyle(target_of("zooming"), family="cfr-icl").conduct
    with pytest.raises(OptionError, match="no family") as caught:
        find_settings("sam")
    assert "gpcis" in caught.value.remedy


def test_errors_name_the_cause():
    with pytest.raises(OptionError, match="names no factory") as unnamed:
        RitmStyle("ritm")
    assert "cfr-icl: 448 px square" in unnamed.value.remedy
    with pytest.raises(ModelError, match="failed: RuntimeError: no such checkpoint"):
        RitmStyle(target_of("broken"))
    with pytest.raises(ModelError, match="without set_input_image and get_prediction"):
        RitmStyle(target_of("nothing"))
    with pytest.raises(ModelError, match="has no argument 'depth'"):
        RitmStyle(target_of("zooming"), "depth=3")
    with pytest.raises(OptionError, match="no JSON object"):
        RitmStyle(target_of("zooming"), "{width")
    with pytest.raises(OptionError, match="no probability"):
        RitmStyle(target_of("zooming"), threshold=49)
    with pytest.raises(OptionError, match="colours"):
        RitmStyle(target_of("zooming"), colours="hsv")
    click = Clicks(np.zeros((1, 2), np.float32), np.ones(1, bool))
    with pytest.raises(ModelError, match=r"expected a map \(20, 26\), got one of shape \(1, 20, 26\)"):
        RitmStyle(target_of("Flat")).open(picture(0)).predict([click])
