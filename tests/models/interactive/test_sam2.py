"""SAM 2 from a local folder, against transformers' own forward pass for one prompt at a time."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tiny_sam import SIDE, network, picture, prompt, prompts

from hardlook.errors import ModelError
from hardlook.models.conformance import check_model
from hardlook.models.interactive.prompts import PromptPolicy
from hardlook.models.interactive.sam2 import MAX_LOGIT, Sam2, open_sam2_session
from hardlook.models.interactive.sam_frame import prepare_sam2_image
from hardlook.models.registry import build

torch = pytest.importorskip("torch")

pytest.importorskip("transformers")

SHAPES = [(64, 64), (40, 57), (7, 200)]
# Logits of up to 60 from random weights: processors differ by 1e-3. Another prompt's differ by whole numbers.
CLOSE = {"rtol": 1e-3, "atol": 5e-3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("sam2")
    network("sam2").save_pretrained(made)
    return made


def reference(made, image, asked, *, several=False, previous=None):
    """Logits and scores of the whole network for one prompt, its points scaled by hand."""
    points = asked.points / (image.shape[1], image.shape[0]) * SIDE
    with torch.inference_mode():
        answer = made(
            pixel_values=torch.from_numpy(prepare_sam2_image(image, SIDE)),
            input_points=torch.tensor(points, dtype=torch.float32)[None, None],
            input_labels=torch.tensor(asked.positive.astype(int))[None, None],
            input_masks=None if previous is None else previous[None],
            multimask_output=several,
        )
    return answer.pred_masks[0, 0], answer.iou_scores[0, 0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("multimask", ["always", "never"])
def test_answers_are_those_of_the_whole_network(folder, shape, multimask):
    made, image = network("sam2"), picture(*shape)
    session = Sam2(folder, multimask=multimask).open(image)
    asked = [*prompts(*shape, clicks=1, count=3), *prompts(*shape, clicks=3, count=3)]
    for one, answer in zip(asked, session.predict(asked), strict=True):
        logits, scores = reference(made, image, one, several=multimask == "always")
        best = logits[int(scores.argmax())]
        assert np.allclose(answer.state[0], best.clamp(-MAX_LOGIT, MAX_LOGIT), **CLOSE)
        full = torch.nn.functional.interpolate(best[None, None], shape, mode="bilinear", align_corners=False)[0, 0]
        certain = np.abs(full.numpy()) > 1e-3
        assert np.array_equal(answer.mask[certain], full.numpy()[certain] > 0)


def test_each_prompt_has_its_own_previous_logits(folder):
    made, image = network("sam2"), picture(40, 57)
    session = Sam2(folder).open(image)
    states = [answer.state for answer in session.predict(prompts(40, 57, clicks=1, count=3))]
    asked = [prompt((5, 9, True), (20 + n, 30, False), state=state) for n, state in enumerate(states)]
    for one, answer in zip(asked, session.predict(asked), strict=True):
        logits, _ = reference(made, image, one, previous=one.state)
        assert np.allclose(answer.state[0], logits[0].clamp(-MAX_LOGIT, MAX_LOGIT), **CLOSE)


def test_batches_answer_as_single_prompts_do(folder):
    session = Sam2(folder, batch=4).open(picture(90, 131))
    asked = [one for clicks in (1, 2, 1) for one in prompts(90, 131, clicks=clicks, count=5, seed=clicks)]
    for one, answer in zip(asked, session.predict(asked), strict=True):
        [alone] = session.predict([one])
        assert np.allclose(answer.state, alone.state, **CLOSE)
        assert np.mean(answer.mask != alone.mask) < 1e-3


def test_an_image_is_encoded_once():
    made, encodings = network("sam2"), []
    made.vision_encoder.register_forward_hook(lambda *_: encodings.append(1))
    session = open_sam2_session(made, picture(40, 57), PromptPolicy(), batch=2)
    for clicks in (1, 2, 3):
        session.predict(prompts(40, 57, clicks=clicks, count=5))
    assert len(encodings) == 1


def test_the_roles_contract(folder):
    findings = check_model(functools.partial(Sam2, folder), "promptable-segmenter")
    assert [finding.line() for finding in findings if not finding.passed] == []


@pytest.mark.parametrize("shape", [(480, 640), (333, 217), (64, 64), (9, 20)])
def test_pixels_are_sam2s(shape):
    image = picture(*shape)
    floats = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    resized = torch.nn.functional.interpolate(floats, (SIDE, SIDE), mode="bilinear", antialias=True)
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    expected = (resized - mean.reshape(3, 1, 1)) / deviation.reshape(3, 1, 1)
    assert np.allclose(prepare_sam2_image(image, SIDE), expected.numpy(), atol=1e-4)


def test_a_folder_of_the_video_model_serves(folder, tmp_path):
    video, image = network("sam2_video"), picture(40, 57)
    video.save_pretrained(tmp_path)
    still, named = network("sam2", seed=1), video.state_dict()
    still.load_state_dict({name: named[name] for name in still.state_dict()})
    for one in prompts(40, 57, clicks=2, count=2):
        [answer] = Sam2(tmp_path).open(image).predict([one])
        logits, _ = reference(still.eval(), image, one)
        assert np.allclose(answer.state[0], logits[0].clamp(-MAX_LOGIT, MAX_LOGIT), **CLOSE)


def test_the_report_is_told_how_it_is_driven(folder):
    assert build("sam2", "promptable-segmenter", {"path": str(folder)}).conduct == (
        "One mask at every click; previous logits given back; the best of three where the one is unstable; "
        "stretched to 64 x 64 pixels; a mask is where the logit is over 0."
    )
    assert "unstable" not in Sam2(folder, multimask="always").conduct


def test_a_folder_of_another_family_will_not_do(tmp_path):
    network("sam").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="holds a 'sam' model, expected 'sam2' or 'sam2_video'"):
        Sam2(tmp_path)
