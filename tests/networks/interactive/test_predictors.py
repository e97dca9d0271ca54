"""Predictors: courses of the released code with a stand-in network, batches, readings, cascades."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from interactive_goldens import Watched, check_trajectory, course_of, read_arrays
from random_click_networks import make_ritm, make_simpleclick
from torch.utils.flop_counter import FlopCounterMode
from triton_tests import DEVICE

from hardlook.networks.interactive import predictors
from hardlook.networks.interactive.gpu.inference import GpuOptions, prepare
from hardlook.networks.interactive.predictor_settings import PUBLISHED, Cascade, PredictorSettings, ZoomIn
from hardlook.networks.interactive.predictors import Course, Predictor, send, stack_padded
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.zoom_in import find_boxes

SMALL_CROP = PredictorSettings(ZoomIn(160, min_crop=40))

# The sets of the probe, by name.
SETS = {
    "ritm_default": PUBLISHED["ritm"],
    "ritm_davis": PUBLISHED["ritm"].on("DAVIS"),
    "ritm_small_crop": SMALL_CROP,
    "skip0_recalculation": PredictorSettings(ZoomIn(128, skip_clicks=0, min_crop=40)),
    "fixed448": PUBLISHED["simpleclick"],
    "fixed_small_crop": PredictorSettings(ZoomIn((96, 96), skip_clicks=-1, min_crop=40)),
    "no_flip_small_crop": replace(SMALL_CROP, flip=False),
    "clicks_limit3_small_crop": replace(SMALL_CROP, clicks_limit=3),
    "max_size100_no_zoom": PredictorSettings(None, longest_side=100),
    "max_size100_fixed_zoom": PredictorSettings(ZoomIn((160, 160), skip_clicks=-1), longest_side=100),
}


class Probe:
    """The stand-in network of the goldens: brightness, the last mask, a slope, and a hill or a valley at each click."""

    with_prev_mask = takes_sizes = True

    def __init__(self, offset=0.62):
        self.offset = offset

    def __call__(self, inputs, points, sizes=None):
        if sizes is None:
            sizes = [inputs.shape[2:]] * len(inputs)
        logits = inputs.new_zeros(len(inputs), 1, *inputs.shape[2:])
        for place, (height, width) in enumerate(torch.as_tensor(sizes).tolist()):
            found = self.answer(inputs[place, :, :height, :width].double(), points[place].double())
            logits[place, 0, :height, :width] = found.to(inputs.dtype)
        return logits

    def answer(self, x, points):
        height, width = x.shape[1:]
        rows, columns = torch.arange(height)[:, None], torch.arange(width)
        logits = 6 * (x[0] - self.offset) + x[3] + 1.2 * (columns.double() / (width - 1) - 0.5)
        spread = 0.12 * min(height, width)
        for place, (row, column, order) in enumerate(points.tolist()):
            if order >= 0:
                hill = 5 * torch.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * spread**2))
                logits = logits + hill if place < len(points) // 2 else logits - hill
        return logits


def list_trajectories():
    """Names of the probe's trajectories; those of the shared goldens where the file is not there."""
    try:
        arrays = read_arrays("predictor_probe")
    except pytest.skip.Exception:
        return ["small.ritm_default"]
    return sorted(name.removesuffix(".clicks") for name in arrays.files if name.endswith(".clicks"))


def picture_of(arrays, scene):
    return arrays[f"image_{scene}" if f"image_{scene}" in arrays else "image_small"]


@pytest.fixture(scope="module")
def picture():
    """(90, 140, 3): a bright disc beside the middle, another bright patch, noise."""
    rows, columns = np.indices((90, 140))
    bright = 90 + 120 * ((rows - 40) ** 2 + (columns - 60) ** 2 < 400) + 80 * ((rows > 70) & (columns > 110))
    noise = np.random.default_rng(5).integers(-20, 20, (90, 140, 3))
    return np.clip(bright[..., None] + noise, 0, 255).astype(np.uint8)


COURSES = [
    [(40, 60, True), (75, 120, False), (30, 50, True), (5, 5, False)],
    [(40, 60, True), (80, 130, True), (10, 100, False), (20, 30, True)],
    [(75, 120, True), (40, 60, False), (85, 135, True), (0, 0, True)],
    [(2, 3, True), (40, 60, True), (60, 60, False), (89, 139, True)],
]


def play(opened, courses, together):
    """Probabilities (courses, clicks, H, W) and crops, all courses at once or one after another."""
    states, maps, crops = [None] * len(courses), [], []
    for count in range(1, len(courses[0]) + 1):
        given = [Course(clicks[:count], state) for clicks, state in zip(courses, states, strict=True)]
        states = opened.predict(given) if together else [opened.predict([one])[0] for one in given]
        maps.append(torch.stack([state.probabilities for state in states]))
        crops.append([state.crop for state in states])
    return torch.stack(maps, 1), crops


@pytest.mark.parametrize("name", list_trajectories())
def test_courses_equal_the_released_code(name):
    arrays = read_arrays("predictor_probe")
    scene, _, chosen = name.partition(".")
    probe = Probe(float(arrays[f"probe_offset_{scene}"]))
    # A new predictor made these numbers as exactly: nothing but float32 stands between the two.
    check_trajectory(arrays, name, picture_of(arrays, scene), probe, SETS[chosen], tolerance=1e-6)


@pytest.mark.parametrize(
    "settings", [SMALL_CROP, SETS["skip0_recalculation"], replace(PUBLISHED["gpcis"], input_size=(64, 64))]
)
@pytest.mark.parametrize("pad", [False, True])
def test_courses_together_are_the_one_by_one_loop(picture, settings, pad):
    opened = Predictor(Probe(0.9), settings, pad=pad, batch=3).open(picture)
    together, alone = play(opened, COURSES, True), play(opened, COURSES, False)
    assert together[1] == alone[1], "the same crops"
    assert len({crop for crops in alone[1] for crop in crops}) > 3, "the crops differ"
    assert torch.equal(together[0], alone[0])


def test_ritm_answers_padded_courses_as_one_by_one(picture):
    """Probabilities within 1e-5 of the one-by-one loop (float32), crops the same."""
    torch.manual_seed(0)
    network, probe = RITM(6, 4, small=True).eval(), Probe(0.9)
    with torch.no_grad():
        network.maps_transform[3].scale.fill_(1.0)
        network.feature_extractor.cls_head.weight *= 100

    class WithHills:
        """The hills of the probe make the crops follow the clicks, which random weights would not."""

        with_prev_mask = takes_sizes = True

        def __call__(self, inputs, points, **sizes):
            return network(inputs, points, **sizes)["instances"] + probe(inputs, points, **sizes)

    settings = PredictorSettings(ZoomIn(64, min_crop=20))
    loop = play(Predictor(WithHills(), settings).open(picture), COURSES[:3], False)
    watched = Watched(WithHills())
    batched = play(Predictor(watched, settings, pad=True).open(picture), COURSES[:3], True)
    assert batched[1] == loop[1]
    assert len({crop for crops in loop[1] for crop in crops}) > 3, "the crops differ"
    assert float((batched[0] - loop[0]).abs().max()) < 1e-5
    assert len(watched.calls) < 12


def test_padding_joins_courses_whose_crops_differ(picture):
    calls = {}
    for pad in (False, True):
        watched = Watched(Probe(0.9))
        opened = Predictor(watched, SMALL_CROP, pad=pad).open(picture)
        play(opened, COURSES, True)
        calls[pad] = len(watched.calls)
    assert calls[True] < calls[False]
    assert not Predictor(lambda inputs, points: inputs, SMALL_CROP, pad=True).pad, "it cannot tell padding"


def test_a_course_does_not_depend_on_what_was_asked_before(picture):
    opened = Predictor(Probe(), SMALL_CROP).open(picture)
    clicks = COURSES[0]
    (first,) = opened.predict([Course(clicks[:1])])
    (other,) = opened.predict([Course(COURSES[2][:1])])
    opened.predict([Course(COURSES[2][:2], other)])
    again = opened.predict([Course(clicks[:2], first), Course(clicks[:2], first)])
    assert torch.equal(again[0].probabilities, again[1].probabilities)
    assert first.clicks == 1


def test_an_empty_mask_keeps_the_whole_picture_in_our_reading():
    """Released: the answer for the whole picture is squeezed into the crop of an earlier click."""

    def answer(inputs, points):
        # The object is lost at the second click and found again at the third.
        clicks = int((points[0, :, 2] >= 0).sum())
        logits = torch.full((len(inputs), 1, *inputs.shape[2:]), -4.0)
        logits[..., 10:20, 30:40] = {1: 4.0, 2: -4.0, 3: 4.0}[clicks]
        return logits

    clicks = [(15, 35, True), (16, 36, True), (17, 37, True)]
    found = {}
    for reading in ("released", "ours"):
        settings = PredictorSettings(ZoomIn(40, min_crop=20), flip=False, feed_back=False, reading=reading)
        opened, state = Predictor(answer, settings).open(np.zeros((60, 80, 3), np.uint8)), None
        for count in (1, 2, 3):
            (state,) = opened.predict([Course(clicks[:count], state)])
        found[reading] = state
    assert found["ours"].crop is None
    assert find_boxes([found["ours"].probabilities], 0.5) == [(10, 19, 30, 39)]
    crop = found["released"].crop
    assert crop == (4, 24, 24, 44)
    box = find_boxes([found["released"].probabilities], 0.5)[0]
    assert box != (10, 19, 30, 39)
    assert crop[0] <= box[0] <= box[1] <= crop[1]
    assert found["released"].probabilities[: crop[0]].sum() == 0


@pytest.mark.parametrize(("every_click", "calls"), [(False, 2), (True, 1)])
def test_a_small_first_crop_is_looked_at_again_unless_crops_are_always_renewed(picture, every_click, calls):
    # As released: RITM's predictor looks again, FocalClick's, CDNet's and GPCIS's do not.
    watched = Watched(Probe(0.9))
    settings = PredictorSettings(ZoomIn(64, skip_clicks=0, min_crop=10, every_click=every_click))
    (state,) = Predictor(watched, settings).open(picture).predict([Course(COURSES[0][:1])])
    assert len(watched.calls) == calls
    assert (state.crop is None) is every_click


@pytest.mark.parametrize(("columns", "calls"), [(45, 2), (53, 1)])
@pytest.mark.parametrize("recompute_below", [0.2, 0.9])
def test_a_first_crop_is_small_under_half_of_the_picture(columns, calls, recompute_below):
    """Whatever the overlap is under which a stored crop is renewed."""

    def network(inputs, points):
        seen.append(inputs.shape)
        logits = torch.full((len(inputs), 1, *inputs.shape[2:]), -9.0)
        logits[..., :columns] = 9.0
        return logits

    seen = []
    zoom = ZoomIn(skip_clicks=0, expansion=1, min_crop=1, recompute_below=recompute_below)
    opened = Predictor(network, PredictorSettings(zoom, flip=False)).open(np.zeros((100, 100, 3), np.uint8))
    opened.predict([Course([(50, 20, True)])])
    assert len(seen) == calls


def test_the_first_click_is_answered_again_with_its_own_answer(picture):
    watched = Watched(Probe())
    settings = PredictorSettings(ZoomIn((48, 48), skip_clicks=-1, min_crop=40), cascade=Cascade(clicks=1, passes=2))
    opened, clicks = Predictor(watched, settings).open(picture), COURSES[0]
    (state,) = opened.predict([Course(clicks[:1])])
    means = [float(inputs[:, 3].mean()) for inputs, _ in watched.calls]
    assert means[0] == 0
    assert min(means[1:]) > 0
    assert len(means) == 3
    opened.predict([Course(clicks[:2], state)])
    assert len(watched.calls) == 4, "later clicks once"
    # The same by hand.
    plain, by_hand = Predictor(Probe(), replace(settings, cascade=None)).open(picture), None
    for _ in range(3):
        (by_hand,) = plain.predict([Course(clicks[:1], by_hand)])
    assert torch.equal(by_hand.probabilities, state.probabilities)


def test_an_adaptive_cascade_stops_when_the_mask_stays(picture):
    watched = Watched(lambda inputs, points: torch.full((len(inputs), 1, *inputs.shape[2:]), 1.0))
    settings = PredictorSettings(None, cascade=Cascade(1, passes=9, adaptive=20))
    Predictor(watched, settings).open(picture).predict([Course(COURSES[0][:1])])
    assert len(watched.calls) == 2


def test_without_feedback_the_fourth_channel_stays_empty_and_a_baseline_has_none(picture):
    watched = Watched(Probe())
    opened = Predictor(watched, replace(SMALL_CROP, feed_back=False)).open(picture)
    play(opened, COURSES[:1], True)
    assert all(float(inputs[:, 3].abs().sum()) == 0 for inputs, _ in watched.calls)
    baseline = Watched(lambda inputs, points: inputs[:, :1], with_prev_mask=False)
    play(Predictor(baseline, SMALL_CROP).open(picture), COURSES[:1], True)
    assert {inputs.shape[1] for inputs, _ in baseline.calls} == {3}


def test_logits_are_averaged_before_the_sigmoid_and_small_ones_enlarged(picture):
    def answer(inputs, points):
        return torch.tensor([8.0, -2.0])[:, None, None, None].expand(-1, -1, 5, 7)

    (state,) = Predictor(answer, PredictorSettings(None)).open(picture).predict([Course(COURSES[0][:1])])
    assert float(state.probabilities.min()) == pytest.approx(float(torch.tensor(3.0).sigmoid()))


def test_a_network_may_finish_its_logits(picture):
    class Finishing(Probe):
        def finish_logits(self, logits, inputs, points):
            assert inputs.shape[2:] == logits.shape[2:]
            return torch.full_like(logits, -9.0)

    (state,) = Predictor(Finishing(), SMALL_CROP).open(picture).predict([Course(COURSES[0][:1])])
    assert float(state.probabilities.max()) < 0.001


class Counted:
    """A prepared network that counts its calls and keeps the sizes of their inputs."""

    def __init__(self, prepared, calls):
        self.prepared, self.takes_sizes, self.calls = prepared, prepared.takes_sizes, calls

    def __call__(self, inputs, points, sizes):
        self.calls.append((tuple(inputs.shape[2:]), sizes))
        return self.prepared(inputs, points, sizes)


class Preparing(Predictor):
    """As on a GPU, also where there is none; counts the calls of prepared networks."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.calls = []

    def find_form(self, picture):
        form = prepare(self.network, self.gpu)
        return None if form is None else Counted(form, self.calls)


GPU_SETTINGS = PredictorSettings(ZoomIn(64, min_crop=20))


@pytest.mark.parametrize("kind", ["ritm", "padded ritm", "simpleclick"])
def test_courses_of_a_prepared_network_are_those_of_the_network(picture, kind):
    network, probe = (make_simpleclick() if kind == "simpleclick" else make_ritm()).to(DEVICE), Probe(0.9)
    # The hills of the probe make the crops follow the clicks.
    network.finish_logits = lambda logits, inputs, points: logits + probe(inputs.cpu(), points.cpu()).to(DEVICE)
    with torch.no_grad():
        network.logit_layer.weight *= 0.2
    zoom = ZoomIn((24, 24), skip_clicks=-1, min_crop=20)
    settings = PredictorSettings(zoom) if kind == "simpleclick" else GPU_SETTINGS
    pad = kind == "padded ritm"
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        without = Predictor(network, settings, pad=pad, gpu=GpuOptions(enabled=False))
        plain = without.open(picture, device=DEVICE)
        opened = Preparing(network, settings, pad=pad, gpu=GpuOptions(kernels=False)).open(picture, device=DEVICE)
        expected, found = play(plain, COURSES, True), play(opened, COURSES, True)
    assert found[1] == expected[1], "the same crops"
    assert len({crop for crops in found[1] for crop in crops}) > 3, "the crops differ"
    assert torch.equal(found[0] > 0.5, expected[0] > 0.5)
    assert 0.05 < (found[0] > 0.5).float().mean() < 0.5
    assert (found[0] - expected[0]).abs().max() < 1e-4
    calls = opened.predictor.calls
    assert len(calls) >= 4
    assert all((sizes is None) is (kind == "simpleclick") for _, sizes in calls)
    if kind == "padded ritm":
        assert all(side % 16 == 0 for size, _ in calls for side in size), "few sizes, as a graph is for one"
        assert any(len(set(sizes.tolist()[0])) > 1 for _, sizes in calls)


def test_a_prepared_network_is_used_for_logits_of_float32_that_nobody_counts(picture):
    network, clicks = make_ritm().to(DEVICE), [Course(COURSES[0][:1])]
    predictor = Preparing(network, GPU_SETTINGS)
    opened = predictor.open(picture, device=DEVICE)
    opened.predict(clicks)
    calls = len(predictor.calls)
    assert calls > 0
    with FlopCounterMode(display=False) as counter:
        opened.predict(clicks)
    assert counter.get_total_flops() > 0
    network.double()
    double = replace(opened, picture=opened.picture.double())
    double.predict(clicks)
    assert len(predictor.calls) == calls


def test_a_network_is_prepared_on_a_gpu_only_when_an_image_is_opened(picture, monkeypatch):
    predictor, asked = Predictor(make_ritm().to(DEVICE), GPU_SETTINGS), []
    monkeypatch.setattr(predictors, "prepare", lambda *given: asked.append(given) or prepare(*given))
    opened = predictor.open(picture, device=DEVICE)
    assert asked == ([(predictor.network, None)] if DEVICE.type == "cuda" else [])
    assert (predictor.find_form(opened.picture) is not None) is (DEVICE.type == "cuda")
    without = Predictor(predictor.network, GPU_SETTINGS, gpu=GpuOptions(enabled=False))
    assert without.find_form(opened.picture) is None


@pytest.mark.parametrize("make", [make_ritm, make_simpleclick])
def test_an_opened_image_follows_its_network(picture, make):
    """Also in the middle of a course; SimpleClick's blocks are read at every call, its convolutions once."""
    settings = PredictorSettings(ZoomIn((24, 24), skip_clicks=-1, min_crop=20))
    network, courses = make().to(DEVICE), [Course(COURSES[0][:1])]
    predictor = Preparing(network, settings)
    opened = predictor.open(picture, device=DEVICE)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        before = opened.predict(courses)[0].probabilities
        torch.manual_seed(1)
        network.load_state_dict(make().state_dict())
        found = opened.predict(courses)[0].probabilities
        plain = Predictor(network, settings, gpu=GpuOptions(enabled=False)).open(picture, device=DEVICE)
        expected = plain.predict(courses)[0].probabilities
    assert len(predictor.calls) >= 2
    assert (found - expected).abs().max() < 1e-4
    assert (found - before).abs().max() > 0.01


@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
def test_an_opened_image_may_be_copied_after_its_network_was_prepared(picture, again):
    opened = Preparing(make_ritm().to(DEVICE), GPU_SETTINGS).open(picture, device=DEVICE)
    courses = [Course(COURSES[0][:1])]
    expected = opened.predict(courses)[0].probabilities
    other = again(opened)
    assert other.predictor.network is not opened.predictor.network
    torch.testing.assert_close(other.predict(courses)[0].probabilities, expected)


def test_predictions_do_not_depend_on_the_default_device(picture):
    network, courses = make_ritm(), [Course(one[:2]) for one in COURSES]
    given = Preparing(network, GPU_SETTINGS, pad=True), Predictor(network, GPU_SETTINGS, gpu=GpuOptions(enabled=False))
    for predictor in given:
        opened = predictor.open(picture, device="cpu")
        expected = [state.probabilities for state in opened.predict(courses)]
        with torch.device("meta"):
            found = [state.probabilities for state in opened.predict(courses)]
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one, other)


def test_pictures_are_padded_to_a_multiple():
    pictures = [torch.rand(2, *size) for size in ((5, 9), (7, 3))]
    batch, padded = stack_padded(pictures, 4)
    assert padded
    assert batch.shape == (2, 2, 8, 12)
    for picture, one in zip(pictures, batch, strict=True):
        rows, columns = picture.shape[1:]
        assert torch.equal(one[:, :rows, :columns], picture)
        assert one.count_nonzero() == picture.count_nonzero()
    assert stack_padded(pictures)[0].shape == (2, 2, 7, 9)
    alike = [torch.rand(2, 8, 12) for _ in range(3)]
    batch, padded = stack_padded(alike, 4)
    assert not padded
    assert torch.equal(batch, torch.stack(alike))
    assert stack_padded(alike, 16)[0].shape == (3, 2, 16, 16)


def test_values_are_sent_as_they_are():
    for values in (torch.rand(2, 3), torch.tensor([[1, 2]]), torch.rand(4, 2).T):
        found = send(values, DEVICE)
        assert found.device.type == DEVICE.type
        assert torch.equal(found.cpu(), values)
        assert found.dtype == values.dtype


def test_only_values_of_a_processor_are_pinned(monkeypatch):
    """Those of a GPU cannot be: a tensor without memory stands for one."""
    moved = []
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *given, **named: moved.append((given, named)) or self)
    values = torch.empty(2, 3, device="meta")
    assert send(values, torch.device("cuda")) is values
    assert moved == [((torch.device("cuda"),), {})]


def test_every_set_of_the_probe_has_settings():
    assert {name.partition(".")[2] for name in list_trajectories()} <= SETS.keys()


def test_clicks_of_the_probe_change_the_answer(picture):
    """The stand-in is no constant: a planted error in any step would show."""
    opened = Predictor(Probe(), SMALL_CROP).open(picture)
    maps, _ = play(opened, COURSES, True)
    assert maps.std(0).max() > 0.1
    assert course_of({"x.clicks": np.array([[1, 2, 0]])}, "x") == [(1, 2, False)]
