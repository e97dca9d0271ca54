"""Published networks as promptable segmenters: options, courses, datasets, and runs that are killed and resumed."""

import cv2
import numpy as np
import pytest
import torch
from killed_runs import check_killed_and_resumed

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.models.conformance import check_named
from hardlook.models.identity import identify
from hardlook.models.interactive.network_segmenter import Ritm
from hardlook.models.registry import build
from hardlook.models.roles import Clicks
from hardlook.networks.interactive.checkpoints import build_network, fit_to_noise, read_checkpoint
from hardlook.networks.interactive.predictor_settings import PUBLISHED
from hardlook.networks.interactive.predictors import Course, Predictor
from hardlook.networks.interactive.ritm import RITM
from hardlook.rclicks.evaluation import fit_to_dataset

ROLE = "promptable-segmenter"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A checkpoint of a small RITM whose masks depend on the clicks."""
    torch.manual_seed(25)
    network = RITM(6, 4, small=True)
    fit_to_noise(network)
    arguments = {"norm_radius": {"type": "builtin", "value": 5, "specified": True}}
    config = {"class": "isegm.model.is_hrnet_model.HRNetModel", "params": arguments}
    path = tmp_path_factory.mktemp("weights") / "tiny_itermask.pth"
    torch.save({"state_dict": network.state_dict(), "config": config}, path)
    return path


@pytest.fixture(scope="module")
def image():
    rows, columns = np.indices((60, 80))
    inside = (rows - 30) ** 2 + (columns - 30) ** 2 < 200
    noise = np.random.default_rng(0).integers(0, 40, (60, 80, 3))
    return (60 + 120 * inside[..., None] + noise).astype(np.uint8)


def draw_course(seed, rounds=4):
    rng = np.random.default_rng(seed)
    points = np.stack([rng.integers(0, 80, rounds), rng.integers(0, 60, rounds)], 1).astype(np.float32)
    return points, np.array([True, *(rng.random(rounds - 1) < 0.6)])


COURSES = [draw_course(seed) for seed in range(3)]


def play(session, courses, *, together):
    """Masks (courses, clicks, H, W) with each answer's state given back."""
    states, masks = [None] * len(courses), [[] for _ in courses]
    for count in range(1, len(courses[0][0]) + 1):
        prompts = [
            Clicks(points[:count], positive[:count], state)
            for (points, positive), state in zip(courses, states, strict=True)
        ]
        answers = session.predict(prompts) if together else [session.predict([one])[0] for one in prompts]
        for place, answer in enumerate(answers):
            states[place] = answer.state
            masks[place].append(answer.mask)
    return np.array(masks)


def test_it_fulfils_its_role(weights):
    findings = check_named("ritm", ROLE, {"weights": str(weights), "zoom": "false"})
    assert all(finding.passed for finding in findings), [str(one) for one in findings if not one.passed]


def test_masks_are_those_of_the_published_predictor(weights, image):
    model = build("ritm", ROLE, {"weights": str(weights)})
    points, positive = COURSES[0][0][:2], COURSES[0][1][:2]
    masks = play(model.open(image), [(points, positive)], together=True)[0]
    assert 0 < masks.mean() < 1
    opened, state = Predictor(build_network(read_checkpoint(weights)), PUBLISHED["ritm"]).open(image), None
    for count, mask in enumerate(masks, 1):
        clicks = [(int(y), int(x), bool(sign)) for (x, y), sign in zip(points, positive, strict=True)]
        (state,) = opened.predict([Course(clicks[:count], state)])
        assert np.array_equal((state.probabilities > 0.49).numpy(), mask)
    assert state.crop is not None, "the second click zooms in"


def test_courses_may_be_interleaved_joined_and_replayed(weights, image):
    model = Ritm(str(weights), zoom=False)
    alone = np.stack([play(model.open(image), [course], together=False)[0] for course in COURSES])
    assert len({mask.tobytes() for mask in alone.reshape(-1, *alone.shape[2:])}) > 6, "clicks change the masks"
    assert np.array_equal(play(model.open(image), COURSES, together=True), alone)
    whole = model.open(image).predict([Clicks(points, positive) for points, positive in COURSES])
    assert np.array_equal(np.stack([answer.mask for answer in whole]), alone[:, -1])


def test_several_courses_in_one_pass_have_nearly_the_same_masks(weights, image):
    alone = play(Ritm(str(weights), zoom=False).open(image), COURSES, together=True)
    batched = play(Ritm(str(weights), zoom=False, batch=8).open(image), COURSES, together=True)
    assert (alone != batched).mean() < 1e-3


def test_no_clicks_give_an_empty_mask_and_a_foreign_state_is_refused(weights, image):
    session = Ritm(str(weights)).open(image)
    nothing = Clicks(np.zeros((0, 2), np.float32), np.zeros(0, bool))
    points, positive = COURSES[0]
    empty, first = session.predict([nothing, Clicks(points[:1], positive[:1])])
    assert not empty.mask.any()
    assert empty.state is None
    other = Clicks(COURSES[1][0][:2], COURSES[1][1][:2], first.state)
    for prompt in (other, Clicks(points[:1], positive[:1], first.state)):
        with pytest.raises(ModelError, match="expected the state of a prompt's earlier clicks"):
            session.predict([prompt])


def test_options_reach_the_predictor(weights):
    def settings(**given):
        return Ritm(str(weights), **given).settings

    assert settings().zoom.target == 400
    assert settings(zoom=False).zoom is None
    assert not settings(flip=False).flip
    assert settings(reading="ours").reading == "ours"
    assert settings(threshold=0.6).threshold == 0.6
    assert settings(dataset="DAVIS").zoom.target == 600
    for wrong in ({"reading": "paper"}, {"threshold": 1.0}, {"size": "hrnet18"}, {"batch": 0}, {"precision": "tf32"}):
        with pytest.raises(OptionError):
            settings(**wrong)


def test_each_dataset_has_its_published_settings(weights):
    model = Ritm(str(weights))
    assert fit_to_dataset(model, "davis").settings.zoom.target == 600
    assert fit_to_dataset(model, "tetris").settings.zoom.skip_clicks == -1
    assert fit_to_dataset(model, "grabcut").settings == model.settings
    chosen = Ritm(str(weights), dataset="DAVIS")
    assert fit_to_dataset(chosen, "grabcut").settings.zoom.target == 600
    assert "longest side 600" in fit_to_dataset(model, "davis").conduct
    plain = object()
    assert fit_to_dataset(plain, "davis") is plain


def test_conduct_and_identity_tell_what_ran(weights):
    model = Ritm(str(weights), reading="ours")
    assert "tiny_itermask.pth" in model.conduct
    assert "reading ours" in model.conduct
    assert "no encoding shared" in model.conduct
    identity = identify(model, name="ritm", role=ROLE, args={"weights": str(weights)})
    assert list(identity.weights) == ["tiny_itermask.pth"]
    assert model.fingerprint() == Ritm("random:0", size="hrnet18s").fingerprint()


def test_random_parameters_have_a_seed_and_a_size():
    assert "ritm with random parameters of seed 3: zoom-in from click 2" in Ritm("random:3", size="hrnet18s").conduct
    with pytest.raises(OptionError, match="has no seed"):
        Ritm("random:")
    with pytest.raises(OptionError, match="ritm has no size 'hrnet99'") as caught:
        Ritm("random:1", size="hrnet99")
    assert caught.value.remedy == "one of hrnet18s, hrnet18, hrnet32"
    with pytest.raises(DataError, match="does not exist"):
        Ritm("nowhere.pth")


def test_a_run_on_photographs_is_killed_and_resumed(weights, tmp_path, shared_data):
    source, folder = shared_data / "data" / "GrabCut", tmp_path / "GrabCut"
    if not source.is_dir():
        pytest.skip(f"no GrabCut at {source}")
    for part in ("data_GT", "boundary_GT"):
        (folder / part).mkdir(parents=True)
        for path in sorted((source / part).iterdir())[:3]:
            # Smaller, for time: a large picture takes a second a click.
            picture = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
            small = cv2.resize(picture, None, fx=0.3, fy=0.3, interpolation=cv2.INTER_NEAREST)
            cv2.imwrite(str(folder / part / f"{path.stem}.png"), small)
    words = [
        *("rclicks", "--data", f"grabcut={folder}", "--model", "ritm", "--model-arg", f"weights={weights}"),
        *("--rounds", "2", "--groups", "2", "--resamples", "20", "--batch-size", "1"),
    ]
    records = check_killed_and_resumed(words, tmp_path, units=3)
    assert "ritm with tiny_itermask.pth: zoom-in from click 2" in records["conduct"][0]
    assert sum(records["intersection"].explode().to_list()) > 0, "some masks are not empty"
