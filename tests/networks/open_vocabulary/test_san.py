"""SAN: laws, and the released code."""

import copy
import json

import pytest
import torch
from clip_vit_goldens import Watch, check_array, check_table, fill_network, list_keys, read_image
from goldens import Golden, goldens_folder, read_golden

from hardlook.networks.open_vocabulary.clip_text import TEXT_SIZES, TextSize
from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES, ViTSize, normalise, pad_to_multiple
from hardlook.networks.open_vocabulary.san import SAN, SAN_SIZES, SANSize, build_attention_mask, label_pixels

SIDE, CLIP, LAST = "side_adapter_network", "clip_visual_extractor", "clip_rec_head"
LOGITS = ("class_logits", "aux_class_logits", "mask_logits", "aux_mask_logits", "sem_seg")


@pytest.fixture(scope="module")
def small():
    """A network of 3 blocks with 2 heads, of which the first two extract features."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VIT_SIZES, "small", ViTSize(16, 128, 3, 4, 32))
        patch.setitem(TEXT_SIZES, "small", TextSize(64, 1, 32, vocabulary=20, context=6))
        patch.setitem(SAN_SIZES, "small", SANSize("small", 2, (0, 1, 2, 2), 0.5))
        torch.manual_seed(0)
        return SAN("small", classes=4).eval()


@pytest.fixture(scope="module")
def scene():
    """Two images of 70 x 100 pixels, and vectors of three classes."""
    rng = torch.Generator().manual_seed(1)
    return 255 * torch.rand(2, 3, 70, 100, generator=rng), torch.randn(3, 32, generator=rng)


def test_images_do_not_mix_and_classes_have_no_order(small, scene):
    images, text = scene
    with torch.no_grad():
        together = small.segment(images, text)
        assert together.shape == (2, 3, 70, 100)
        torch.testing.assert_close(small.segment(images[1:], text), together[1:], atol=1e-4, rtol=1e-4)
        order = torch.tensor([2, 0, 1])
        moved = small.segment(images.flip(0), text[order])
        torch.testing.assert_close(moved, together.flip(0)[:, order], atol=1e-4, rtol=1e-4)
        assert not torch.allclose(together[0], together[1], atol=1e-3)


def test_scores_are_sums_over_masks_and_come_at_any_size(small, scene):
    images, text = scene
    with torch.no_grad():
        scores = small.segment(images, text, (35, 50))
        ((masks, classes),) = small(pad_to_multiple(normalise(images)), text)
    assert scores.shape == (2, 3, 35, 50) and masks.shape == (2, 100, 6, 8) and classes.shape == (2, 100, 4)
    assert scores.min() >= 0 and scores.sum(1).max() <= 100
    assert classes.abs().max() <= small.ov_classifier.logit_scale.exp() + 1e-4


def test_the_bias_of_a_mask_moves_that_mask_alone(small):
    rng = torch.Generator().manual_seed(2)
    features, token = torch.randn(1, 128, 3, 4, generator=rng), torch.randn(1, 1, 128, generator=rng)
    biases = torch.zeros(1, 2, 5, 6, 8)
    with torch.no_grad():
        before = small.clip_rec_head(features, token, biases)
        biases[:, :, 3, 0, 0] = 5.0
        after = small.clip_rec_head(features, token, biases)
    torch.testing.assert_close(before[:, 0], before[:, 1])
    torch.testing.assert_close(after[:, [0, 1, 2, 4]], before[:, [0, 1, 2, 4]])
    assert not torch.allclose(after[:, 3], before[:, 3], atol=1e-3)


def test_positions_of_a_long_image_are_resized_unless_released(small):
    side = copy.deepcopy(small.side_adapter_network)
    side.vit_model.pos_embed = torch.nn.Parameter(torch.randn(1, 16, 240, generator=torch.Generator().manual_seed(3)))
    taps, results = [torch.zeros(1, 128, 2, 2)] * 4, {}
    for released in (False, True):
        side.released = released
        with torch.no_grad():
            sizes = ((32, 128), (64, 64), (32, 64))
            results[released] = [side(torch.zeros(1, 3, *size), taps, (8,))[0][0] for size in sizes]
    torch.testing.assert_close(results[True][1:], results[False][1:])
    assert not torch.allclose(results[True][0], results[False][0], atol=1e-4)


def test_both_supervised_depths_have_gradients_and_lower_precision_runs(small, scene):
    images, text = scene
    padded = pad_to_multiple(normalise(images[:1]))
    network = copy.deepcopy(small)
    outputs = network(padded, text, (7, 8))
    sum(part.square().mean() for output in outputs for part in output).backward()
    without = {name for name, one in network.named_parameters() if one.grad is None}
    assert all(name.startswith("ov_classifier.") for name in without)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        masks, classes = small(padded, text)[0]
    torch.testing.assert_close(masks.float(), outputs[1][0].detach(), atol=0.1, rtol=0.1)
    assert classes.isfinite().all()


@pytest.fixture(scope="module")
def filled():
    golden = read_golden("open_vocabulary", "san_vit_b_16")
    with torch.device("meta"):
        network = SAN("san_vit_b_16", released=True)
    network = network.to_empty(device="cpu")
    network.ov_classifier.attn_mask.copy_(torch.full((77, 77), -torch.inf).triu(1))
    network.criterion.empty_weight.fill_(1)[-1] = 0.1
    return golden, fill_network(network, golden, ("ov_classifier.attn_mask", "criterion.empty_weight"))


@pytest.fixture(scope="module")
def exact(filled):
    return filled[0], copy.deepcopy(filled[1]).double()


def compute(network, golden, case, dtype):
    """All arrays that the goldens have of a case."""
    image = read_image(golden, case, dtype)
    text = torch.from_numpy(golden.arrays[f"{case}/text"]).to(dtype)
    names = [
        f"{SIDE}.vit_model.patch_embed",
        f"{SIDE}.mask_decoder",
        LAST,
        *(f"{LAST}.resblocks.{n}" for n in range(3)),
    ]
    names += [f"{SIDE}.vit_model.blocks.{n}" for n in (0, 7)] + [f"{SIDE}.fusion_layers.layer_{n}" for n in range(4)]
    names += [f"{SIDE}.mask_decoder.{name}_mlp" for name in ("query", "pix")] + [CLIP]
    with torch.no_grad(), Watch(network, ["", *names]) as found:
        scores = network.segment(image, text, tuple(golden.facts["cases"][case]["output_size"]))
    got = {}
    padded = pad_to_multiple(normalise(image))
    if f"{case}/aux_class_logits" in golden.arrays:
        with torch.no_grad():
            got["aux_mask_logits"], got["aux_class_logits"] = network(padded, text, (7,))[0]
    ((masks, classes),) = found[""][0]
    (maps, class_token), (_, biases) = found[CLIP][0], found[f"{SIDE}.mask_decoder"][-1]
    pooled = torch.nn.functional.adaptive_max_pool2d(biases.flatten(1, 2), maps[-1].shape[2:])
    got |= {
        "clip_input": network.reduce(padded),
        "clip_tap9_cls": class_token,
        "side_patch_embed": found[f"{SIDE}.vit_model.patch_embed"][0],
        "side_block1": found[f"{SIDE}.vit_model.blocks.0"][0],
        "side_block8": found[f"{SIDE}.vit_model.blocks.7"][0],
        "mask_query": found[f"{SIDE}.mask_decoder.query_mlp"][-1],
        "mask_pixel": found[f"{SIDE}.mask_decoder.pix_mlp"][-1],
        "mask_logits": masks,
        "attn_bias": biases,
        "attn_bias_full": build_attention_mask(pooled.flatten(2).unflatten(1, biases.shape[1:3])).flatten(0, 1),
        "mask_embedding": found[LAST][-1],
        "classifier": network.ov_classifier.build_classifier(text),
        "class_logits": classes,
        "sem_seg": scores[0],
    }
    got |= {f"clip_tap{tap}": one for tap, one in zip((0, 3, 6, 9), maps, strict=True)}
    got |= {f"side_after_fusion{n}": found[f"{SIDE}.fusion_layers.layer_{n}"][0] for n in range(4)}
    got |= {f"rec_block{n}": found[f"{LAST}.resblocks.{n}"][-1].transpose(0, 1) for n in range(3)}
    return got


def check_case(network, golden, case, dtype):
    got = compute(network, golden, case, dtype)
    for key in list_keys(golden, case):
        check_array(golden, f"{case}/{key}", got[key], absolute=1e-4 if key in LOGITS else 0.0)


def test_goldens_in_float64(exact):
    golden, network = exact
    for case in golden.facts["cases"]:
        check_case(network, golden, case, torch.float64)


def test_goldens_in_float32(filled):
    golden, network = filled
    check_case(network, golden, next(iter(golden.facts["cases"])), torch.float32)


def test_goldens_of_texts(exact):
    golden, network = exact
    with torch.no_grad():
        vectors = network.ov_classifier.encode_tokens(torch.from_numpy(golden.arrays["text/tokens"]).long())
    check_array(golden, "text/embedding", torch.nn.functional.normalize(vectors, dim=-1))


@pytest.mark.parametrize("size", ["san_vit_b_16", "san_vit_l_14"])
def test_parameters_have_the_names_shapes_and_order_of_the_released_network(size):
    path = goldens_folder("open_vocabulary") / f"{size}.json"
    with torch.device("meta"):
        check_table(SAN(size), Golden(size, json.loads(path.read_text()), {}))


def test_pixels_have_the_class_of_the_largest_sum_however_many_are_summed_at_a_time():
    rng = torch.Generator().manual_seed(3)
    classes, masks = torch.rand(5, 7, generator=rng), torch.rand(5, 4, 6, generator=rng)
    expected = torch.einsum("qc,qhw->chw", classes, masks).argmax(0)
    for most in (1, 3, 32):
        assert torch.equal(label_pixels(classes, masks, most), expected)


def test_a_class_has_the_best_of_its_names(small, scene):
    images, text = scene
    with torch.no_grad():
        padded = pad_to_multiple(normalise(images))
        ((_, apart),), ((_, joined),) = small(padded, text), small(padded, text, counts=(1, 2))
    assert torch.equal(joined, torch.stack((apart[..., 0], apart[..., 1:3].amax(2), apart[..., 3]), 2))
