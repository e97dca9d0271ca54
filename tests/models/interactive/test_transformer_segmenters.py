"""SimpleClick, CFR-ICL and AdaptiveClick as promptable segmenters, and a run that is killed and resumed."""

import numpy as np
import pytest
import torch
from killed_runs import check_killed_and_resumed

from hardlook.errors import ModelError, OptionError
from hardlook.models.conformance import check_named
from hardlook.models.interactive.network_segmenter import AdaptiveClick, CfrIcl, SimpleClick
from hardlook.models.registry import build, find
from hardlook.models.roles import Clicks
from hardlook.networks.interactive.adaptiveclick import AdaptiveClick as AdaptiveClickNetwork
from hardlook.networks.interactive.checkpoints import fit_to_noise
from hardlook.networks.interactive.predictors import Course
from hardlook.networks.interactive.ritm import RITM
from hardlook.networks.interactive.simpleclick import SimpleClick as SimpleClickNetwork
from hardlook.rclicks.evaluation import fit_to_dataset

ROLE = "promptable-segmenter"
POINTS, POSITIVE = np.array([[30, 30], [60, 10], [35, 40]], np.float32), np.array([True, False, True])


@pytest.fixture(scope="module")
def image():
    rows, columns = np.indices((60, 80))
    inside = (rows - 30) ** 2 + (columns - 30) ** 2 < 200
    noise = np.random.default_rng(0).integers(0, 40, (60, 80, 3))
    return (60 + 120 * inside[..., None] + noise).astype(np.uint8)


def play(model, image, clicks=3):
    """Masks (clicks, H, W) of one course, each answer's state given back."""
    session, state, masks = model.open(image), None, []
    for count in range(1, clicks + 1):
        (answer,) = session.predict([Clicks(POINTS[:count], POSITIVE[:count], state)])
        state = answer.state
        masks.append(answer.mask)
    return np.array(masks)


@pytest.fixture(scope="module")
def transformers(tmp_path_factory):
    """Checkpoints of small transformers by the name of a model that reads them."""
    torch.manual_seed(4)
    folder = tmp_path_factory.mktemp("transformers")
    backbone = {"patch": 16, "width": 32, "depth": 4, "heads": 4, "pyramid": (16, 16, 16, 16)}
    networks = {
        "simpleclick": SimpleClickNetwork(**backbone, head_width=8),
        "adaptiveclick": AdaptiveClickNetwork(**backbone),
        "ritm": RITM(6, 4, small=True),
    }
    # As published: one argument in the settings is an object of a class, which `weights_only` refuses.
    told = {"backbone_params": {"value": {"num_heads": 4}}, "head_params": {"value": {"loss": torch.nn.GELU()}}}
    for name, network in networks.items():
        fit_to_noise(network)
        content = {"state_dict": network.state_dict(), "config": {"class": "", "params": told}}
        torch.save(content, folder / f"{name}.pth")
    paths = {name: str(folder / f"{name}.pth") for name in networks}
    return {**paths, "cfr-icl": paths["simpleclick"]}


def test_simpleclick_fulfils_its_role(transformers):
    findings = check_named("simpleclick", ROLE, {"weights": transformers["simpleclick"]})
    assert all(finding.passed for finding in findings), [str(one) for one in findings if not one.passed]


@pytest.mark.parametrize("name", ["simpleclick", "cfr-icl", "adaptiveclick"])
def test_they_have_the_published_sizes(transformers, name):
    model = build(name, ROLE, {"weights": transformers[name]})
    assert model.settings.zoom.target == (448, 448)
    assert fit_to_dataset(model, "davis").settings.zoom.target == (672, 672)
    assert ("predictor not checked against released code" in find(name).card.summary) == (name == "adaptiveclick")


def test_adaptiveclick_answers_and_has_its_reading(transformers, image):
    model = AdaptiveClick(transformers["adaptiveclick"], flip=False)
    assert play(model, image, clicks=2).shape == (2, 60, 80)
    for reading in ("released", "ours"):
        assert AdaptiveClick(transformers["adaptiveclick"], reading=reading)._network.reading == reading


def test_a_checkpoint_of_another_family_is_refused(transformers):
    with pytest.raises(ModelError, match="of the family ritm, not simpleclick") as caught:
        SimpleClick(transformers["ritm"])
    assert caught.value.remedy == "--model ritm"
    with pytest.raises(ModelError, match="of the family adaptiveclick, not cfr-icl"):
        CfrIcl(transformers["adaptiveclick"])


def test_cfr_icl_answers_the_first_click_twice(transformers, image):
    weights = transformers["simpleclick"]
    once, twice = play(SimpleClick(weights), image), play(CfrIcl(weights), image)
    assert not np.array_equal(once[0], twice[0])
    # By hand: the first click again, with the state of its first answer.
    opened, clicks = SimpleClick(weights).make_predictor().open(image), [(30, 30, True)]
    (state,) = opened.predict([Course(clicks)])
    assert np.array_equal(opened.mask(state).numpy(), once[0])
    (state,) = opened.predict([Course(clicks, state)])
    assert np.array_equal(opened.mask(state).numpy(), twice[0])
    assert "first 1 click(s) answered 1 times more" in CfrIcl(weights).conduct


def test_any_family_may_repeat_clicks(transformers, image):
    weights = transformers["simpleclick"]
    once, twice = play(SimpleClick(weights), image), play(CfrIcl(weights), image)
    assert np.array_equal(once, play(CfrIcl(weights, repeats=0), image))
    assert np.array_equal(twice, play(SimpleClick(weights, repeats=1), image))
    until = play(CfrIcl(weights, repeats=9, repeat_until=image.size), image)
    assert np.array_equal(twice, until), "no more than one pixel per pixel changes, so one repeat is enough"
    each = play(CfrIcl(weights, repeated_clicks=3), image)
    assert np.array_equal(twice[0], each[0])
    assert not np.array_equal(twice[1:], each[1:])
    for wrong in ({"repeats": -1}, {"repeated_clicks": -1}, {"repeat_until": -1}):
        with pytest.raises(OptionError, match="are counts"):
            CfrIcl(weights, **wrong)


def test_without_zoom_in_the_whole_picture_has_the_published_size(transformers, image):
    model = SimpleClick(transformers["simpleclick"], zoom=False)
    assert model.settings.zoom is None
    assert model.settings.input_size == (448, 448)
    assert fit_to_dataset(model, "davis").settings.input_size == (672, 672)
    assert fit_to_dataset(model, "tetris").settings == model.settings
    assert play(model, image, clicks=2).shape == (2, 60, 80)


def test_random_parameters_answer_to_clicks(image):
    model = SimpleClick("random:1", size="vit_xtiny")
    (one,), (other,) = (
        model.open(image).predict([Clicks(points, np.array([True]))]) for points in (POINTS[:1], POINTS[1:2])
    )
    for answer in (one, other):
        assert 0.01 < answer.mask.mean() < 0.99
    assert not np.array_equal(one.mask, other.mask)
    assert "simpleclick with random parameters of seed 1: zoom-in from click 1, 448 x 448" in model.conduct
    with pytest.raises(OptionError, match="simpleclick has no size 'vit_tiny'"):
        SimpleClick("random:1", size="vit_tiny")


def test_a_run_on_photographs_is_killed_and_resumed(transformers, tmp_path, shared_data):
    source, folder = shared_data / "data" / "GrabCut", tmp_path / "GrabCut"
    if not source.is_dir():
        pytest.skip(f"no GrabCut at {source}")
    for part in ("data_GT", "boundary_GT"):
        (folder / part).mkdir(parents=True)
        for path in sorted((source / part).iterdir())[:3]:
            (folder / part / path.name).symlink_to(path)
    words = [
        *("rclicks", "--data", f"grabcut={folder}", "--model", "simpleclick"),
        *("--model-arg", f"weights={transformers['simpleclick']}"),
        *("--rounds", "2", "--groups", "2", "--resamples", "20", "--batch-size", "1"),
    ]
    records = check_killed_and_resumed(words, tmp_path, units=3)
    assert "simpleclick with simpleclick.pth: zoom-in from click 1, 448 x 448" in records["conduct"][0]
    assert sum(records["intersection"].explode().to_list()) > 0, "some masks are not empty"
