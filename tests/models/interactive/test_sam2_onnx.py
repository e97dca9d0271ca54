"""SAM 2 through onnxruntime: what the decoder is given, and what real weights find in real photographs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest
from scipy.ndimage import distance_transform_edt
from tiny_sam import prompt, prompts

from hardlook.errors import ModelError, OptionError
from hardlook.models.interactive import sam2_onnx
from hardlook.models.interactive.prompts import PromptPolicy
from hardlook.models.interactive.sam2_onnx import Sam2Onnx, Sam2OnnxSession
from hardlook.models.weights.install import get_weights_status

pytest.importorskip("onnxruntime")


class Decoder:
    """Draws a cross through the last click in mask 1 of three, which it likes best, and keeps what it was given."""

    def __init__(self):
        self.given = []

    def run(self, names, given):
        assert names == ["masks", "iou_predictions"]
        self.given.append(given)
        count = len(given["point_coords"])
        masks = np.full((count, 3, 16, 16), -1, np.float32)
        for place, (x, y) in enumerate(given["point_coords"][:, -1]):
            masks[place, 1, int(y / 4), :] = masks[place, 1, :, int(x / 4)] = 1 + place
        return masks, np.tile(np.array([0.1, 0.9, 0.3], np.float32), (count, 1))


def session(decoder, *, previous=True, batch=16, shape=(32, 128)):
    maps = {"image_embed": np.ones((1, 4, 4, 4), np.float32)}
    return Sam2OnnxSession(decoder, maps, shape, 64, 16, PromptPolicy("always", previous), batch)


def test_clicks_are_scaled_to_the_square_axis_by_axis():
    decoder = Decoder()
    session(decoder).predict([prompt((64, 8, True), (127, 31, False))])
    [given] = decoder.given
    assert given["point_coords"].tolist() == [[[32, 16], [63.5, 62]]]
    assert given["point_labels"].tolist() == [[1, 0]]
    assert given["has_mask_input"].tolist() == [0] and not given["mask_input"].any()
    assert given["image_embed"].shape == (1, 4, 4, 4)


def test_the_best_of_three_is_enlarged_and_given_back():
    decoder = Decoder()
    opened = session(decoder)
    first, second = opened.predict([prompt((64, 8, True)), prompt((10, 20, True))])
    assert first.mask.shape == (32, 128) and first.mask.dtype == np.bool_
    assert first.mask[8].all() and first.mask[:, 66].all() and not first.mask[20, 20]
    opened.predict([prompt((1, 1, True), (2, 2, True), state=one.state) for one in (second, first)])
    assert decoder.given[-1]["has_mask_input"].tolist() == [1]
    assert decoder.given[-1]["mask_input"].shape == (2, 1, 16, 16)
    assert [mask.max() for mask in decoder.given[-1]["mask_input"]] == [2, 1]


def test_prompts_with_and_without_a_state_are_apart():
    decoder = Decoder()
    state = np.zeros((1, 16, 16), np.float32)
    asked = [prompt((1, 1, True)), prompt((9, 9, True), state=state), prompt((2, 2, True))]
    answers = session(decoder).predict(asked)
    assert [given["has_mask_input"][0] for given in decoder.given] == [0, 1]
    assert [int(answer.mask[0].argmax()) // 8 for answer in answers] == [0, 1, 0]


def test_calls_hold_at_most_a_batch():
    decoder = Decoder()
    assert len(session(decoder, batch=4).predict(prompts(32, 128, clicks=2, count=9))) == 9
    assert [len(given["point_coords"]) for given in decoder.given] == [4, 4, 1]
    assert session(decoder).predict([]) == []


def test_without_previous_logits_nothing_is_given_back():
    decoder = Decoder()
    state = np.ones((1, 16, 16), np.float32)
    [answer] = session(decoder, previous=False).predict([prompt((1, 1, True), state=state)])
    assert answer.state is None
    assert decoder.given[0]["has_mask_input"].tolist() == [0]


def test_options_and_files_that_will_not_do(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="without the other"):
        Sam2Onnx(encoder=tmp_path / "encoder.onnx")
    with pytest.raises(OptionError, match="batch 0"):
        Sam2Onnx(batch=0)
    for name in ("encoder.onnx", "decoder.onnx"):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(ModelError, match="not a model of onnxruntime"):
        Sam2Onnx(tmp_path / "encoder.onnx", tmp_path / "decoder.onnx")
    named = [SimpleNamespace(name="image", shape=[1, 3, 64, 64])]
    other = SimpleNamespace(get_inputs=lambda: named, get_outputs=lambda: named)
    monkeypatch.setattr(sam2_onnx, "open_onnx", lambda path, threads, remedy: other)
    with pytest.raises(ModelError, match="the decoder takes image, expected has_mask_input, image, mask_input"):
        Sam2Onnx(tmp_path / "encoder.onnx", tmp_path / "decoder.onnx")


@pytest.mark.real
def test_one_click_finds_the_banana(shared_data):
    if get_weights_status("sam2-hiera-tiny") != "installed":
        pytest.skip("sam2-hiera-tiny is not installed; hardlook weights install sam2-hiera-tiny")
    folder = shared_data / "data" / "GrabCut"
    image = np.asarray(PIL.Image.open(folder / "data_GT" / "banana1.jpg").convert("RGB"))
    truth = np.asarray(PIL.Image.open(folder / "boundary_GT" / "banana1.bmp").convert("L"))
    inside = distance_transform_edt(np.pad(truth > 128, 1))[1:-1, 1:-1]
    y, x = np.unravel_index(inside.argmax(), inside.shape)
    model = Sam2Onnx(threads=2)
    opened = model.open(image)
    asked = [prompt((x, y, True)), prompt((0, 0, True)), prompt((x, y, True), (0, 0, False))]
    answers = opened.predict(asked)
    judged = truth != 128
    found, wanted = answers[0].mask & judged, (truth > 128) & judged
    assert (found & wanted).sum() / (found | wanted).sum() > 0.95
    for one, answer in zip(asked, answers, strict=True):
        [alone] = opened.predict([one])
        assert np.allclose(alone.state, answer.state, atol=1e-3)
    again = [prompt((x, y, True), (0, 0, False), state=one.state) for one in answers[:2]]
    better, other = opened.predict(again)
    assert ((better.mask & wanted).sum() / (better.mask & judged | wanted).sum()) > 0.95
    assert not np.allclose(better.state, other.state, atol=0.1)
    assert model.conduct.startswith("Three masks at every click")
