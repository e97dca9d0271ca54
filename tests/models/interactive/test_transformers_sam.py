"""SAM and SAM-HQ from a local folder, against transformers' own forward pass for one prompt at a time.

Checkpoints with their authors' names give the network that transformers' own folder gives.
"""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import shutil
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from tiny_sam import SIDE, configuration, network, picture, prompt, prompts

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.models.conformance import check_model
from hardlook.models.interactive import transformers_sam
from hardlook.models.interactive.prompts import PromptPolicy
from hardlook.models.interactive.sam_frame import SamFrame
from hardlook.models.interactive.transformers_sam import (
    Sam,
    SamHQ,
    SamNetwork,
    prepare_encoder,
    read_config,
    rename_tensor,
)
from hardlook.models.registry import build
from hardlook.models.weights.install import get_weights_status, locate_weights
from hardlook.networks.kernels import split_products
from hardlook.networks.loading import load_state_dict
from hardlook.rclicks.cost import count_parameters, find_networks

torch = pytest.importorskip("torch")

pytest.importorskip("transformers")

FAMILIES = {"sam": Sam, "sam_hq": SamHQ}

SHAPES = [(64, 64), (40, 57), (90, 131), (7, 200)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}
    for family in FAMILIES:
        made[family] = tmp_path_factory.mktemp(family)
        network(family).save_pretrained(made[family])
    return made


def reference(made, image, asked, *, several=True, previous=None):
    """Logits and scores of the whole network for one prompt, its points scaled by hand."""
    height, width = image.shape[:2]
    longest = max(height, width)
    inside = int(height * SIDE / longest + 0.5), int(width * SIDE / longest + 0.5)
    points = asked.points * (inside[1] / width, inside[0] / height)
    clicked = len(asked.points) > 0
    corners = None if asked.box is None else asked.box.reshape(2, 2) * (inside[1] / width, inside[0] / height)
    with torch.inference_mode():
        answer = made(
            pixel_values=torch.from_numpy(SamFrame.from_image(image, SIDE).prepare_image(image))[None],
            input_points=torch.tensor(points, dtype=torch.float32)[None, None] if clicked else None,
            input_labels=torch.tensor(asked.positive.astype(int))[None, None] if clicked else None,
            input_boxes=None if corners is None else torch.tensor(corners.reshape(1, 1, 4), dtype=torch.float32),
            input_masks=None if previous is None else previous[None],
            multimask_output=several,
        )
    return answer.pred_masks[0, 0], answer.iou_scores[0, 0], inside


def enlarged(logits, inside, shape):
    """SAM's two steps from the network's logits to the image, on one map."""
    square = torch.nn.functional.interpolate(logits[None, None], (SIDE, SIDE), mode="bilinear", align_corners=False)
    part = square[..., : inside[0], : inside[1]]
    return torch.nn.functional.interpolate(part, shape, mode="bilinear", align_corners=False)[0, 0].numpy()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_answers_are_those_of_the_whole_network(folders, family, shape):
    made, image = network(family), picture(*shape)
    session = FAMILIES[family](folders[family]).open(image)
    asked = [*prompts(*shape, clicks=1, count=3), *prompts(*shape, clicks=3, count=3)]
    for one, answer in zip(asked, session.predict(asked), strict=True):
        logits, scores, inside = reference(made, image, one)
        best = int(scores.argmax())
        assert np.allclose(answer.state[0], logits[best], atol=1e-4)
        full = enlarged(logits[best], inside, shape)
        certain = np.abs(full) > 1e-3
        assert np.array_equal(answer.mask[certain], full[certain] > 0)
        assert answer.mask.shape == shape


@pytest.mark.parametrize("family", FAMILIES)
def test_each_prompt_has_its_own_previous_logits(folders, family):
    made, image = network(family), picture(40, 57)
    session = FAMILIES[family](folders[family]).open(image)
    first = prompts(40, 57, clicks=1, count=3)
    states = [answer.state for answer in session.predict(first)]
    second = [
        prompt(*((x, y, p) for (x, y), p in zip(one.points, one.positive, strict=True)), (5, 9, True), state=state)
        for one, state in zip(first, states, strict=True)
    ]
    mixed = [second[0], first[0], *second[1:]]
    answers = session.predict(mixed)
    for one, answer in zip(mixed, answers, strict=True):
        logits, scores, _ = reference(made, image, one, previous=one.state)
        assert np.allclose(answer.state[0], logits[int(scores.argmax())], atol=1e-4)
    without = reference(made, image, second[0])[0]
    assert not np.allclose(answers[0].state[0], without[0], atol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_box_is_the_network_s_own_prompt(folders, family):
    """Alone, with clicks, and beside prompts without one in the same call."""
    made, image = network(family), picture(40, 57)
    session = FAMILIES[family](folders[family]).open(image)
    box, [clicked] = np.array([5, 6, 30, 20], np.float32), prompts(40, 57, clicks=2, count=1)
    nothing = prompt()
    asked = [replace(nothing, box=box), clicked, replace(clicked, box=box), replace(nothing, box=box + 9)]
    answers = session.predict(asked)
    for one, answer in zip(asked, answers, strict=True):
        logits, scores, inside = reference(made, image, one)
        best = int(scores.argmax())
        assert np.allclose(answer.state[0], logits[best], atol=1e-4)
        full = enlarged(logits[best], inside, (40, 57))
        certain = np.abs(full) > 1e-3
        assert np.array_equal(answer.mask[certain], full[certain] > 0)
    for one, other in ((0, 3), (1, 2)):
        assert not np.allclose(answers[one].state, answers[other].state, atol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("multimask", "masks"), [("always", (3, 3)), ("first", (3, 1)), ("never", (1, 1))])
def test_the_policy_says_how_many_masks_are_asked_for(folders, family, multimask, masks):
    made, image = network(family), picture(40, 57)
    session = FAMILIES[family](folders[family], multimask=multimask).open(image)
    for clicks, count in zip((1, 2), masks, strict=True):
        [one] = prompts(40, 57, clicks=clicks, count=1)
        logits, scores, _ = reference(made, image, one, several=count == 3)
        assert len(logits) == count
        assert np.allclose(session.predict([one])[0].state[0], logits[int(scores.argmax())], atol=1e-4)


def test_without_previous_logits_nothing_is_given_back(folders):
    model = Sam(folders["sam"], previous=False)
    session = model.open(picture(40, 57))
    [one] = prompts(40, 57, clicks=2, count=1)
    [answer] = session.predict([one])
    given = prompt((1, 1, True), state=torch.ones(1, 16, 16))
    assert answer.state is None
    assert np.array_equal(session.predict([given])[0].mask, session.predict([prompt((1, 1, True))])[0].mask)
    assert "previous logits not given back" in model.conduct


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_batches_answer_as_single_prompts_do(folders, family, batch):
    session = FAMILIES[family](folders[family], batch=batch).open(picture(90, 131))
    asked = [one for clicks in (1, 2, 1, 3) for one in prompts(90, 131, clicks=clicks, count=5, seed=clicks)]
    together = session.predict(asked)
    for one, answer in zip(asked, together, strict=True):
        [alone] = session.predict([one])
        assert np.allclose(answer.state, alone.state, atol=1e-4)
        assert np.mean(answer.mask != alone.mask) < 1e-3
    assert session.predict([]) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_an_image_is_encoded_once(family):
    made, encodings = network(family), []
    made.vision_encoder.register_forward_hook(lambda *_: encodings.append(1))
    session = SamNetwork(made).open(picture(40, 57), PromptPolicy(), batch=2)
    for clicks in (1, 2, 3):
        session.predict(prompts(40, 57, clicks=clicks, count=5))
    assert len(encodings) == 1


def draw_pixels():
    return torch.randn(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(5))


def encode(encoder, pixels):
    with torch.inference_mode():
        output = encoder(pixels)
    return output.last_hidden_state, *(getattr(output, "intermediate_embeddings", None) or ())


@pytest.mark.parametrize("family", FAMILIES)
def test_relative_positions_are_computed_once_and_again_for_other_tables(monkeypatch, family):
    given, pixels, calls = network(family).vision_encoder, draw_pixels(), []
    kind = next(type(module) for module in given.modules() if hasattr(module, "get_rel_pos"))
    plain = kind.get_rel_pos
    expected = encode(given, pixels)
    monkeypatch.setattr(kind, "get_rel_pos", lambda *given: calls.append(1) or plain(*given))
    prepared = prepare_encoder(given.train(), split_products=False, least=24)
    assert not prepared.training and given.training
    for _ in range(2):
        assert all(torch.equal(one, other) for one, other in zip(encode(prepared, pixels), expected, strict=True))
    assert len(calls) == 2 * len(given.layers)
    with torch.no_grad():
        given.layers[0].attn.rel_pos_w.mul_(2)
    changed = encode(prepared, pixels)
    assert len(calls) == 2 * len(given.layers) + 1
    assert torch.equal(changed[0], encode(given.eval(), pixels)[0]) and not torch.equal(changed[0], expected[0])


class ExactKernels:
    """In place of a GPU's: the sum of three products of parts, exact up to the last rounding."""

    split = staticmethod(split_products.split)

    def multiply(self, rows, parts, weight, weight_parts, bias, table):
        high, low = (one.double() for one in parts[:2])
        other_high, other_low = (one.double().T for one in weight_parts[:2])
        product = low @ other_high + high @ other_low + high @ other_high
        product = product * parts.scale.double()[:, None] * weight_parts.scale.double()
        product = product if bias is None else product + bias
        return (product if table is None else product + table.repeat(len(rows) // len(table), 1)).float()


@pytest.fixture
def with_kernels(monkeypatch):
    monkeypatch.setattr(split_products, "find_kernels", lambda where: ExactKernels())
    monkeypatch.setattr(split_products, "LEAST_ROWS", 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_split_products_encode_as_the_plain_layers(with_kernels, family):
    given, pixels = network(family).vision_encoder, draw_pixels()
    before = [*given.state_dict()], [type(module) for module in given.modules()]
    prepared = prepare_encoder(given, split_products=True, least=24)
    split = [name for name, module in prepared.named_modules() if type(module).__name__ == "SplitLinear"]
    assert len(split) == 4 * len(given.layers)
    assert ([*given.state_dict()], [type(module) for module in given.modules()]) == before
    assert all(one is other for one, other in zip(prepared.parameters(), given.parameters(), strict=True))
    assert count_parameters([given, prepared]) == count_parameters([given])
    exact = encode(copy.deepcopy(given).double(), pixels.double())
    for ours, theirs, true in zip(encode(prepared, pixels), encode(given, pixels), exact, strict=True):
        assert not torch.equal(ours, theirs)
        assert (ours - true).norm() < 2 * (theirs - true).norm()


@pytest.mark.parametrize("family", FAMILIES)
def test_without_kernels_split_products_change_no_bit(family):
    given, pixels = network(family).vision_encoder, draw_pixels()
    prepared = prepare_encoder(given, split_products=True, least=24)
    pairs = zip(encode(prepared, pixels), encode(given, pixels), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """All that is prepared for a GPU, on the processor; graphs are replaced by the calls that they record."""
    monkeypatch.setattr(SamNetwork, "_is_on_gpu", True)
    monkeypatch.setattr(transformers_sam, "CudaGraphs", lambda function: function)


def predict_twice(opener, asked):
    """Logits of prompts on an image, then with these as earlier answers."""
    session = opener.open(picture(40, 57), PromptPolicy())
    first = [answer.state for answer in session.predict(asked)]
    second = session.predict([replace(one, state=state) for one, state in zip(asked, first, strict=True)])
    return torch.stack([*first, *(answer.state for answer in second)])


def is_near(found, expected):
    """Random weights make much of a rounding: a bug would be a hundred times as large."""
    return bool((found.cpu() - expected).abs().max() < 3e-4 * expected.abs().max())


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_layers_for_gpus_give_the_same_masks(with_kernels, as_on_a_gpu, monkeypatch, family, split):
    asked, made = prompts(40, 57, clicks=2, count=3), network(family)
    prepared = SamNetwork(made, split_products=split)
    found = predict_twice(prepared, asked)
    assert (prepared.decoder is not None) == (family == "sam")
    monkeypatch.undo()
    assert is_near(found, predict_twice(SamNetwork(network(family)), asked))
    assert [type(module) for module in made.modules()] == [type(module) for module in network(family).modules()]
    assert [*made.state_dict()] == [*network(family).state_dict()]


@pytest.mark.parametrize(("precision", "split"), [("float32", False), ("tf32", True), ("bfloat16", True)])
@pytest.mark.parametrize("family", FAMILIES)
def test_products_are_split_in_float32_only(as_on_a_gpu, monkeypatch, family, precision, split):
    tried, replaced = [], []
    monkeypatch.setattr(transformers_sam, "find_product_kernels", tried.append)
    monkeypatch.setattr(transformers_sam, "replace_linear_layers", lambda network, *_: replaced.append(network))
    SamNetwork(network(family), precision, split_products=split)
    assert not tried and not replaced
    made = SamNetwork(network(family))
    assert tried == [torch.device("cpu")] and len(replaced) == (1 if family == "sam" else 2)
    assert replaced[0] is made.encoder and replaced[-1] in (made.encoder, made.network.mask_decoder)
    assert made.decoder is None or all(one.joint._split for one in made.decoder._layers)


@pytest.mark.parametrize("place", ["gpu", "processor"])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_may_change_between_images(request, family, place):
    asked, made, other = prompts(40, 57, clicks=2, count=2), network(family), network(family, seed=1)
    expected = [predict_twice(SamNetwork(one), asked) for one in (made, other)]
    if place == "gpu":
        request.getfixturevalue("with_kernels"), request.getfixturevalue("as_on_a_gpu")
    opener = SamNetwork(made)
    assert is_near(predict_twice(opener, asked), expected[0])
    decoder = opener.decoder
    predict_twice(opener, asked)
    assert opener.decoder is decoder  # nothing is made anew without need
    made.load_state_dict(other.state_dict())
    assert is_near(predict_twice(opener, asked), expected[1])
    made.load_state_dict({name: value.clone() for name, value in network(family).state_dict().items()}, assign=True)
    assert is_near(predict_twice(opener, asked), expected[0])


def step_fused(made, other):
    optimizer = torch.optim.AdamW(made.parameters(), lr=0.05, fused=True)
    for one, target in zip(made.parameters(), other.parameters(), strict=True):
        one.grad = one.detach() - target.detach()
    optimizer.step()


def write_data(made, other):
    for one, target in zip(made.parameters(), other.parameters(), strict=True):
        one.data.copy_(target.data)


def write_encoder(made, other):
    write_data(made.vision_encoder, other.vision_encoder)


def write_decoder(made, other):
    write_data(made.mask_decoder, other.mask_decoder)


@pytest.mark.parametrize("change", [step_fused, write_data, write_encoder, write_decoder])
@pytest.mark.parametrize("family", FAMILIES)
def test_changes_that_torch_does_not_count_are_followed(with_kernels, as_on_a_gpu, family, change):
    asked, made = prompts(40, 57, clicks=2, count=2), network(family)
    opener = SamNetwork(made)
    before = predict_twice(opener, asked)
    versions, decode, encoder = [one._version for one in made.parameters()], opener._decode, opener.encoder
    change(made, network(family, seed=1))
    assert [one._version for one in made.parameters()] == versions
    found, expected = predict_twice(opener, asked), predict_twice(SamNetwork(made), asked)
    assert torch.equal(found, expected) and not is_near(found, before)
    # Only what has changed is made anew.
    assert (opener._decode is decode) == (change is write_encoder)
    assert (opener.encoder is encoder) == (change is write_decoder)


def test_weights_of_inference_mode_are_followed(with_kernels, as_on_a_gpu):
    asked, made, other = prompts(40, 57, clicks=2, count=2), network("sam"), network("sam", seed=1)
    with torch.inference_mode():
        state = {name: value.clone() for name, value in made.state_dict().items()}
        made.load_state_dict(state, assign=True)
        opener = SamNetwork(made)
        predict_twice(opener, asked)
        made.load_state_dict(other.state_dict())
    assert made.shared_image_embedding.positional_embedding.is_inference()
    assert is_near(predict_twice(opener, asked), predict_twice(SamNetwork(other), asked))


def test_numbers_that_are_none_are_no_change(as_on_a_gpu):
    made = network("sam").requires_grad_(False)
    made.mask_decoder.iou_token.weight[0, 0] = float("nan")
    made.vision_encoder.pos_embed[0, 0, 0, 0] = float("nan")
    opener = SamNetwork(made)
    kept = opener.encoder, opener.decoder
    opener.open(picture(40, 57), PromptPolicy())
    assert (opener.encoder, opener.decoder) == kept


def test_memory_that_graphs_read_is_kept_until_the_next_image(as_on_a_gpu):
    made = network("sam").requires_grad_(False)
    weight = made.mask_decoder.iou_prediction_head.proj_in.weight
    memory = weight.numpy().copy()
    weight.data = torch.from_numpy(memory)
    kept = weakref.ref(memory)
    del memory
    opener = SamNetwork(made)
    weight.data = torch.zeros_like(weight)
    assert kept() is not None
    opener.open(picture(40, 57), PromptPolicy())
    assert kept() is None


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_prepared_goes_with_the_last_session(with_kernels, as_on_a_gpu, monkeypatch, family):
    class Graphs:
        def __init__(self, function):
            self.function = function

        def __call__(self, *given):
            return self.function(*given)

    monkeypatch.setattr(transformers_sam, "CudaGraphs", Graphs)
    made = network(family)
    opener = SamNetwork(made)
    session = opener.open(picture(40, 57), PromptPolicy())
    session.predict(prompts(40, 57, clicks=1, count=1))
    parts = (opener, opener._decode, opener.network.mask_decoder, opener.encoder, opener.encoder.layers[0].attn.proj)
    left = [weakref.ref(one) for one in parts]
    gc.disable()
    try:
        del opener, parts
        assert all(one() is not None for one in left)
        del session
        assert [one() for one in left] == [None] * len(left)
    finally:
        gc.enable()


def test_relative_positions_are_those_of_the_table():
    memory = np.ones((7, 2), np.float32)
    cached = transformers_sam._cache_positions(lambda q_size, k_size, rel_pos: rel_pos.clone())
    for value in (1.0, 5.0):
        memory[:] = value  # unseen by torch
        table = torch.from_numpy(memory)  # whose place and identity are those of the one before
        assert torch.equal(cached(4, 4, table), table)
        del table


@pytest.mark.parametrize("place", ["gpu", "processor"])
def test_an_autocast_around_the_calls_changes_nothing(request, place):
    if place == "gpu":
        request.getfixturevalue("as_on_a_gpu")
    asked, opener = prompts(40, 57, clicks=2, count=2), SamNetwork(network("sam"))
    expected = predict_twice(opener, asked)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(predict_twice(opener, asked), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_layers_for_gpus_have_the_network_s_parameters(as_on_a_gpu, family):
    made = network(family)
    opener = SamNetwork(made)
    assert count_parameters(list(find_networks(opener))) == sum(one.numel() for one in made.parameters())


def test_positions_are_of_float32_in_every_precision():
    made = network("sam")
    with torch.inference_mode():
        expected = made.get_image_wide_positional_embeddings()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(SamNetwork(made).positions, expected)


def test_positions_follow_their_weights():
    made = network("sam")
    opener, before = SamNetwork(made), made.shared_image_embedding.positional_embedding.detach().clone()

    def check():
        opener.open(picture(40, 57), PromptPolicy())
        with torch.inference_mode():
            assert torch.equal(opener.positions, made.get_image_wide_positional_embeddings())

    made.shared_image_embedding.positional_embedding = torch.nn.Parameter(2 * before)
    check()
    made.shared_image_embedding.positional_embedding.data.copy_(3 * before)
    check()


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_split_products_change_nothing_on_a_processor(folders, family, split):
    model = FAMILIES[family](folders[family], split_products=split)
    asked = prompts(40, 57, clicks=2, count=3)
    assert torch.equal(predict_twice(model._opener, asked), predict_twice(SamNetwork(network(family)), asked))
    assert model._opener._split is split and FAMILIES[family](folders[family])._opener._split
    assert model.conduct == FAMILIES[family](folders[family]).conduct
    assert not any(type(module).__name__ == "SplitLinear" for module in model._opener.encoder.modules())


NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@NEEDS_GPU
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_gpu_answers_as_the_processor_does(family, split):
    asked = prompts(40, 57, clicks=2, count=3)
    expected, made = predict_twice(SamNetwork(network(family)), asked), network(family).cuda()
    opener = SamNetwork(made, split_products=split)
    for _ in range(4):  # twice as they are, once recorded, once replayed
        assert is_near(predict_twice(opener, asked), expected)
    made.load_state_dict(network(family, seed=1).state_dict())
    expected = predict_twice(SamNetwork(network(family, seed=1)), asked)
    for _ in range(4):
        assert is_near(predict_twice(opener, asked), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_roles_contract(folders, family):
    findings = check_model(functools.partial(FAMILIES[family], folders[family]), "promptable-segmenter")
    assert [finding.line() for finding in findings if not finding.passed] == []


@pytest.mark.parametrize("shape", [(480, 640), (333, 217), (64, 64), (50, 1000), (9, 20)])
def test_pixels_are_sams(shape):
    image = picture(*shape)
    longest = max(shape)
    height, width = (int(side * SIDE / longest + 0.5) for side in shape)
    expected = np.zeros((SIDE, SIDE, 3))
    resized = PIL.Image.fromarray(image).resize((width, height), PIL.Image.Resampling.BILINEAR)
    colours = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected[:height, :width] = (np.asarray(resized) / 255 - colours[0]) / colours[1]
    before = image.copy()
    assert np.allclose(SamFrame.from_image(image, SIDE).prepare_image(image).transpose(1, 2, 0), expected, atol=1e-5)
    assert np.array_equal(image, before)


def test_the_report_is_told_how_it_is_driven(folders):
    assert build("sam", "promptable-segmenter", {"path": str(folders["sam"])}).conduct == (
        "Three masks at every click, the one with the highest predicted IoU; previous logits given back; "
        "longest side 64 pixels; a mask is where the logit is over 0."
    )
    model = build("sam-hq", "promptable-segmenter", {"path": str(folders["sam_hq"]), "multimask": "never"})
    assert model.conduct.startswith("One mask at every click")
    assert [path.name for path in model.weights_files] == ["config.json", "model.safetensors"]


def test_folders_that_will_not_do(folders, tmp_path):
    with pytest.raises(ModelError, match="holds a 'sam_hq' model, expected 'sam'"):
        Sam(folders["sam_hq"])
    bare = tmp_path / "bare"
    shutil.copytree(folders["sam"], bare)
    (bare / "model.safetensors").unlink()
    with pytest.raises(DataError, match="no weights"):
        Sam(bare)
    with pytest.raises(DataError, match=r"no config\.json"):
        Sam(tmp_path)
    with pytest.raises(OptionError, match="batch 0"):
        Sam(folders["sam"], batch=0)


def test_weights_that_lack_a_part_are_an_error(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(folders["sam"], tmp_path / "cut")
    file = tmp_path / "cut" / "model.safetensors"
    state = load_file(file)
    del state["mask_decoder.iou_token.weight"]
    save_file(state, file, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lack 1 tensors: mask_decoder\.iou_token\.weight"):
        Sam(tmp_path / "cut")


@pytest.mark.parametrize("name", ["SamModel", "SamHQModel", "Sam2Model"])
def test_torchvision_is_not_needed(name):
    transformers = pytest.importorskip("transformers")
    source = Path(inspect.getfile(getattr(transformers, name))).read_text(encoding="utf-8")
    assert "torchvision" not in source and "image_processing" not in source


transformers = pytest.importorskip("transformers")

BOTH = ("weight", "bias")


def pairs(hq):
    """Published name, transformers' name, of every part of a network with three layers: written out, not computed."""
    eye, asked, drawn = "image_encoder", "prompt_encoder", "mask_decoder"
    found = [(f"{eye}.pos_embed", "vision_encoder.pos_embed")]
    parts = [(f"{eye}.patch_embed.proj", "vision_encoder.patch_embed.projection")]
    for n in range(3):
        theirs, ours = f"{eye}.blocks.{n}", f"vision_encoder.layers.{n}"
        parts += [(f"{theirs}.norm{k}", f"{ours}.layer_norm{k}") for k in (1, 2)]
        parts += [(f"{theirs}.{x}", f"{ours}.{x}") for x in ("attn.qkv", "attn.proj", "mlp.lin1", "mlp.lin2")]
        found += [(f"{theirs}.attn.rel_pos_{x}", f"{ours}.attn.rel_pos_{x}") for x in "hw"]
    found += [(f"{eye}.neck.{k}.weight", f"vision_encoder.neck.conv{k // 2 + 1}.weight") for k in (0, 2)]
    parts += [(f"{eye}.neck.{k}", f"vision_encoder.neck.layer_norm{k // 2 + 1}") for k in (1, 3)]
    positions = f"{asked}.pe_layer.positional_encoding_gaussian_matrix"
    found += [(positions, f"{asked}.shared_embedding.positional_embedding")]
    found += [(f"{asked}.point_embeddings.{k}.weight", f"{asked}.point_embed.{k}.weight") for k in range(4)]
    found += [(f"{asked}.{x}.weight", f"{asked}.{x}.weight") for x in ("not_a_point_embed", "no_mask_embed")]
    steps = {0: "conv1", 1: "layer_norm1", 3: "conv2", 4: "layer_norm2", 6: "conv3"}
    parts += [(f"{asked}.mask_downscaling.{k}", f"{asked}.mask_embed.{x}") for k, x in steps.items()]
    found += [(f"{drawn}.{x}.weight", f"{drawn}.{x}.weight") for x in ("iou_token", "mask_tokens")]
    attention = ("self_attn", "cross_attn_token_to_image", "cross_attn_image_to_token")
    for n in range(2):
        layer = f"{drawn}.transformer.layers.{n}"
        parts += [(f"{layer}.{x}.{y}_proj",) * 2 for x in attention for y in ("q", "k", "v", "out")]
        parts += [(f"{layer}.mlp.lin{k}",) * 2 for k in (1, 2)]
        parts += [(f"{layer}.norm{k}", f"{layer}.layer_norm{k}") for k in (1, 2, 3, 4)]
    end = f"{drawn}.transformer"
    parts += [(f"{end}.final_attn_token_to_image.{y}_proj",) * 2 for y in ("q", "k", "v", "out")]
    parts += [(f"{end}.norm_final_attn", f"{end}.layer_norm_final_attn")]
    steps = {0: "upscale_conv1", 1: "upscale_layer_norm", 3: "upscale_conv2"}
    parts += [(f"{drawn}.output_upscaling.{k}", f"{drawn}.{x}") for k, x in steps.items()]
    heads = [*((f"output_hypernetworks_mlps.{k}",) * 2 for k in range(4)), ("iou_prediction_head",) * 2]
    if hq:
        heads += [("hf_mlp", "hq_mask_mlp")]
        found += [(f"{drawn}.hf_token.weight", f"{drawn}.hq_token.weight")]
        names = (
            ("compress_vit_feat", "compress_vit"),
            ("embedding_encoder", "encoder"),
            ("embedding_maskfeature", "mask"),
        )
        for theirs, ours in names:
            steps = {0: "conv1", 1: "norm", 3: "conv2"}
            parts += [(f"{drawn}.{theirs}.{k}", f"{drawn}.{ours}_{x}") for k, x in steps.items()]
    for theirs, ours in heads:
        places = {0: "proj_in", 1: "layers.0", 2: "proj_out"}
        parts += [(f"{drawn}.{theirs}.layers.{k}", f"{drawn}.{ours}.{x}") for k, x in places.items()]
    return found + [(f"{a}.{kind}", f"{b}.{kind}") for a, b in parts for kind in BOTH]


def published(family):
    """The tiny network's weights under their published names."""
    state = network(family).state_dict()
    return {theirs: state[ours].clone() for theirs, ours in pairs(hq=family == "sam_hq")}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_has_a_published_name(family):
    assert {ours for _, ours in pairs(family == "sam_hq")} == {
        name for name in network(family).state_dict() if name != "shared_image_embedding.positional_embedding"
    }
    assert all(rename_tensor(theirs) == ours for theirs, ours in pairs(family == "sam_hq"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_answers_as_the_folder_does(family, tmp_path):
    torch.save(published(family), tmp_path / "weights.pth")
    made = network(family)
    # The two uses of the random places are one tensor in the published files.
    made.shared_image_embedding.positional_embedding.data = made.prompt_encoder.shared_embedding.positional_embedding
    made.save_pretrained(tmp_path / "folder")
    image, asked = picture(40, 57), prompts(40, 57, clicks=2, count=3)
    expected = FAMILIES[family](tmp_path / "folder").open(image).predict(asked)
    model = FAMILIES[family](tmp_path / "weights.pth")
    for one, other in zip(model.open(image).predict(asked), expected, strict=True):
        assert np.allclose(one.state, other.state, atol=1e-5)
        assert np.array_equal(one.mask, other.mask)
    assert model.weights_files == (tmp_path / "weights.pth",)


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_are_read_off_the_shapes(family):
    expected = configuration(family)
    for part, found in read_config(published(family), hq=family == "sam_hq").items():
        assert found == expected[part]


def test_files_that_will_not_do(tmp_path):
    torch.save({"image_encoder.layers.0.weight": torch.zeros(1)}, tmp_path / "other.pth")
    with pytest.raises(ModelError, match="no SAM with a ViT encoder"):
        Sam(tmp_path / "other.pth")
    state = published("sam")
    del state["mask_decoder.iou_token.weight"]
    torch.save(state, tmp_path / "cut.pth")
    with pytest.raises(ModelError, match=r"1 missing: mask_decoder\.iou_token\.weight"):
        Sam(tmp_path / "cut.pth")
    torch.save(published("sam_hq"), tmp_path / "hq.pth")
    with pytest.raises(ModelError, match=r"unexpected: .*hq_token"):
        Sam(tmp_path / "hq.pth")
    with pytest.raises(DataError, match="folder does not exist"):
        Sam(tmp_path / "nothing.pth")


@pytest.mark.real
def test_names_of_a_published_file():
    if get_weights_status("mobile-sam") != "installed":
        pytest.skip("mobile-sam is not installed; hardlook weights install mobile-sam")
    state = load_state_dict(locate_weights("mobile-sam")["mobile_sam.pt"]).state
    config = transformers.SamConfig(vision_config={"num_hidden_layers": 1, "hidden_size": 12})
    wanted = {
        name: tuple(tensor.shape)
        for name, tensor in transformers.SamModel(config).state_dict().items()
        if name.startswith(("prompt_encoder.", "mask_decoder."))
    }
    parts = {
        rename_tensor(name): tuple(tensor.shape)
        for name, tensor in state.items()
        if name.startswith(("prompt_encoder.", "mask_decoder."))
    }
    assert parts == wanted


@pytest.mark.parametrize(
    ("given", "message"), [({"precision": "tf32"}, "is for a GPU"), ({"precision": "half"}, "one of float32, tf32")]
)
def test_another_precision_needs_a_gpu_and_a_name(tmp_path, given, message):
    with pytest.raises(OptionError, match=message):
        Sam(tmp_path, **given)


def test_kernels_are_compiled_before_the_first_image(as_on_a_gpu, monkeypatch):
    tried = []
    monkeypatch.setattr(transformers_sam, "find_step_kernels", lambda where: tried.append(("steps", where)))
    monkeypatch.setattr(transformers_sam, "find_product_kernels", lambda where: tried.append(("products", where)))
    SamNetwork(network("sam"))
    assert tried == [("steps", torch.device("cpu")), ("products", torch.device("cpu"))]


def test_relative_positions_are_those_of_the_sizes():
    cached = transformers_sam._cache_positions(lambda q_size, k_size, rel_pos: (q_size, k_size))
    table, sizes = torch.zeros(7, 2), [(4, 4), (4, 3), (3, 4), (4, 4)]
    assert [cached(*size, table) for size in sizes] == sizes


@pytest.mark.parametrize("batch", [1, 4])
def test_a_pass_has_as_many_prompts_as_the_batch(folders, monkeypatch, batch):
    decode, counts = SamNetwork.decode, []
    monkeypatch.setattr(SamNetwork, "decode", lambda self, *given: counts.append(len(given[2])) or decode(self, *given))
    session = Sam(folders["sam"], batch=batch).open(picture(40, 57))
    session.predict(prompts(40, 57, clicks=1, count=5))
    assert counts == {1: [1] * 5, 4: [4, 1]}[batch]


def test_a_precision_is_told(folders, monkeypatch):
    monkeypatch.setattr(transformers_sam, "check_device_and_batch", lambda *given: None)
    assert Sam(folders["sam"], precision="bfloat16").conduct.endswith("over 0. Computed in bfloat16.")


@pytest.mark.parametrize("family", FAMILIES)
def test_norms_and_upscalings_are_replaced_where_they_are_called(as_on_a_gpu, family):
    made = SamNetwork(network(family)).network
    layers = [made.prompt_encoder.mask_embed.layer_norm1]
    if family == "sam_hq":  # else the decoder's own are not called
        layers += [made.mask_decoder.upscale_layer_norm, made.mask_decoder.upscale_conv1]
    assert [type(one).__name__ for one in layers] == ["ChannelNorm", "ChannelNorm", "Upscaling"][: len(layers)]
