"""FC-CLIP: its parts, mixing of scores, post-processing, and the released code."""

import numpy as np
import pytest
import torch
from fc_clip_goldens import check_array, check_names, fill_module, read_bits
from goldens import read_golden

from hardlook.models.open_vocabulary.free_words import VILD_TEMPLATES
from hardlook.networks.open_vocabulary.clip_convnext import CLIPConvNeXt, ConvNeXtSize, pool_regions
from hardlook.networks.open_vocabulary.clip_resnet import CLIPResNet, ResNetSize
from hardlook.networks.open_vocabulary.clip_text import CLIP
from hardlook.networks.open_vocabulary.fc_clip import (
    FCCLIP,
    TextClassifier,
    find_regions,
    fit_output,
    mix_scores,
    prepare,
    resize_masks,
    segment_instances,
    segment_panoptic,
    segment_semantic,
)
from hardlook.networks.open_vocabulary.fc_clip_decoders import compare

GOLDENS = {"fcclip_convnext_large": "convnext_large_d_320", "fcclip_resnet50": "RN50"}


VISUALS = {
    "convnext": lambda: CLIPConvNeXt(ConvNeXtSize((1, 1, 1, 1), (8, 16, 32, 64), 24)),
    "resnet": lambda: CLIPResNet(ResNetSize((1, 1, 1, 1), 16, 24, 64)),
}


@pytest.fixture(scope="module", params=VISUALS)
def small(request):
    """A network with few layers and queries, and a classifier of three classes with four names."""
    torch.manual_seed(0)
    network = FCCLIP(CLIP(VISUALS[request.param]()), queries=12, encoder_layers=1, decoder_layers=3).eval()
    rows = torch.nn.functional.normalize(torch.randn(4, 24), dim=1)
    return network, TextClassifier(rows, (1, 2, 1), (True, False, False))


def test_images_of_a_batch_do_not_mix_and_probabilities_sum_to_one(small):
    network, text = small
    images = [torch.randint(0, 256, (3, 50, 70)), torch.randint(0, 256, (3, 64, 65))]
    batch = prepare(images)
    assert batch.shape == (2, 3, 64, 96) and batch[0, :, 50:].eq(0).all() and batch[1, :, :, 65:].eq(0).all()
    with torch.no_grad():
        together, alone = network(batch, text), network(batch[1:], text)
    assert together.probabilities.shape == (2, 12, 4) and together.masks.shape == (2, 12, 16, 24)
    torch.testing.assert_close(together.masks[1:], alone.masks, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(together.trained[1:], alone.trained, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(together.probabilities.sum(2), torch.ones(2, 12))


def test_bfloat16_by_autocast(small):
    network, text = small
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        prediction = network(torch.randn(1, 3, 64, 64), text)
    assert prediction.probabilities.isfinite().all() and prediction.masks.isfinite().all()


def test_an_empty_mask_is_named_by_the_trained_classifier_alone_unless_released(small):
    network, _ = small
    regions = torch.zeros(1, 2, 2, 2, dtype=torch.bool)
    regions[0, 0, 1, 1] = True
    assert network._find_valid(regions).tolist() == [[True, False]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "released", True)
        assert network._find_valid(regions).tolist() == [[True, isinstance(network.visual, CLIPConvNeXt)]]


def test_scores_are_weighted_geometric_means_that_leave_void_its_share():
    trained = torch.tensor([[[0.4, 0.1, 0.5]]]).log()
    frozen = torch.tensor([[[0.2, 0.3, 0.5]]]).log()
    # Without void: 0.8 and 0.2 of the trained classifier, 0.4 and 0.6 of the frozen one.
    means = np.array([0.8**0.6 * 0.4**0.4, 0.2**0.2 * 0.6**0.8])
    expected = [*(0.5 * means / means.sum()), 0.5]
    np.testing.assert_allclose(mix_scores(trained, frozen, [True, False])[0, 0], expected, rtol=1e-6)
    alone = mix_scores(trained, frozen, [True, False], valid=torch.tensor([[False]]))
    np.testing.assert_allclose(alone[0, 0], [0.4, 0.1, 0.5], rtol=1e-6)


def test_a_probability_too_small_for_a_number_leads_to_no_nan():
    mixed = mix_scores(torch.tensor([[[0.0, -500.0, -9.0]]]), torch.tensor([[[-500.0, 0.0, 0.0]]]), [True, False])
    assert mixed.isfinite().all() and abs(float(mixed.sum()) - 1) < 1e-6


def draw_masks(*rows):
    """Logits (Q, 1, W) of plus or minus 9."""
    return torch.tensor([[[9.0 if one == "#" else -9.0 for one in row]] for row in rows])


def test_stuff_of_one_class_is_one_segment_things_are_not_and_void_is_none():
    masks = draw_masks("##......", "..##....", "....##..", "......##")
    sure = torch.full((4, 3), 1e-6)
    for query, label in enumerate((1, 0, 1, 2)):
        sure[query, label] = 1
    numbers, segments = segment_panoptic(sure.log(), masks, things=[])
    assert numbers.tolist() == [[1, 1, 2, 2, 1, 1, 0, 0]] and [one.label for one in segments] == [1, 0]
    numbers, segments = segment_panoptic(sure.log(), masks, things=[1])
    assert numbers.tolist() == [[1, 1, 2, 2, 3, 3, 0, 0]]
    assert [(one.label, one.thing) for one in segments] == [(1, True), (0, False), (1, True)]
    numbers, segments = segment_panoptic(sure.log(), masks, things=[], least_score=1.0)
    assert numbers.eq(0).all() and not segments


def test_a_query_that_lost_too_much_of_its_mask_is_dropped_and_its_pixels_stay_empty():
    masks = draw_masks("#####", "###..")
    probabilities = torch.tensor([[0.6, 0.1, 0.3], [0.1, 0.8, 0.1]]).log()
    numbers, segments = segment_panoptic(probabilities, masks, things=[0, 1])
    assert numbers.tolist() == [[1, 1, 1, 0, 0]] and [one.label for one in segments] == [1]
    numbers, _ = segment_panoptic(probabilities, masks, things=[0, 1], least_overlap=0.4)
    assert numbers.tolist() == [[2, 2, 2, 1, 1]]


def test_the_limit_of_instances_is_one_of_things_unless_released():
    masks = draw_masks("##..", "..##")
    probabilities = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]).log()
    found = segment_instances(probabilities, masks, [1], limit=2)
    assert found.queries.tolist() == [1, 0] and found.classes.tolist() == [1, 1]
    np.testing.assert_allclose(found.scores, np.array([0.3, 0.2]) * torch.tensor(9.0).sigmoid().item(), rtol=1e-5)
    assert not len(segment_instances(probabilities, masks, [1], limit=2, released=True).scores)
    assert len(segment_instances(probabilities, masks, None, limit=100).scores) == 4


def test_semantic_scores_are_sums_over_queries():
    masks = draw_masks("#.", "##")
    scores = segment_semantic(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]).log(), masks)
    np.testing.assert_allclose(scores[:, 0], [[0.6, 0.1], [0.45, 0.2]], atol=1e-3)


def test_masks_lose_the_padding_before_they_have_the_size_of_the_output():
    masks = torch.zeros(1, 8, 8)
    masks[:, :, 4:] = 1
    large = resize_masks(masks, (32, 32), (32, 16), (20, 10))
    assert large.shape == (1, 20, 10) and large[:, :, :8].abs().max() == 0


@pytest.mark.parametrize("name", GOLDENS)
def test_names_shapes_and_order_are_those_of_the_released_network(name):
    golden = read_golden("open_vocabulary", name)
    with torch.device("meta"):
        network = FCCLIP.build(GOLDENS[name])
    check_names(network, golden)
    if name == "fcclip_convnext_large":
        assert [one.replace("{label}", "{}") for one in VILD_TEMPLATES] == golden.facts["facts"]["text_classifier"][
            "templates"
        ]


def follow(network, golden, dtype):
    """All that the network computes of the golden's image, by the names of its arrays, and the prediction."""
    arrays = golden.arrays
    text = TextClassifier(
        torch.from_numpy(arrays["text_classifier"]),
        tuple(arrays["num_templates"].tolist()),
        tuple(arrays["category_overlap"].astype(bool).tolist()),
    )
    images = prepare([torch.from_numpy(arrays["image"])], dtype)
    found = {"input": images}
    head, clip = network.sem_seg_head, network.backbone.clip_model
    seen, hooks = {}, []
    for key, part in (("maps", network.visual), ("pixels", head.pixel_decoder)):
        hooks.append(part.register_forward_hook(lambda _, __, output, key=key: seen.setdefault(key, output)))
    draw, steps = head.predictor.draw, []

    def record(*given):
        for step in draw(*given):
            steps.append(step)
            yield step

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(head.predictor, "draw", record)
        prediction = network(images, text)
        for hook in hooks:
            hook.remove()
        maps, (levels, mask_features) = seen["maps"], seen["pixels"]
        rows = network.add_void(text.rows)
        found |= maps | {"clip_vis_dense": maps["res5"], "mask_features": mask_features}
        found |= {f"pixdec_ms{number}": level for number, level in enumerate(levels)}
        for number, step in enumerate(steps):
            found |= {f"dec_query{number}": step.queries, f"aux{number}_masks": step.masks}
            if step.blocked is not None:
                found[f"attn_blocked{number - 1}"] = step.blocked
            if f"aux{number}_logits" in arrays:
                found[f"aux{number}_logits"] = head.predictor.classify(step, mask_features, rows, text.counts)
        regions = find_regions(prediction.masks, maps["res5"])
        found["regions"] = regions
        found["pooled_clip"] = pool_regions(maps["res5"], regions)
        found["clip_embed"] = network.visual.embed_regions(maps["res5"], regions)
        assert torch.equal(compare(found["clip_embed"], rows, text.counts, clip.logit_scale), prediction.frozen)
    found |= {"pred_logits": prediction.trained, "pred_masks": prediction.masks, "outvocab_logits": prediction.frozen}
    found |= {
        "in_vocab_prob": prediction.trained[..., :-1].softmax(-1),
        "out_vocab_prob": prediction.frozen[..., :-1].softmax(-1),
        "mask_cls_log": prediction.log_probabilities[0],
        "class_prob": prediction.probabilities[0],
    }
    return found, prediction


def check_panoptic(golden, key, got):
    numbers, segments = got
    np.testing.assert_array_equal(numbers.numpy(), golden.arrays[f"{key}_map"])
    rows = [[one.number, one.label, int(one.thing)] for one in segments]
    assert rows == golden.arrays[f"{key}_segments"].tolist(), key


def check_instances(golden, key, got, *, loose):
    """Instances in the golden's order, by query and class; `loose` allows a pixel at the edge of a mask."""
    order = np.lexsort((got.classes.numpy(), got.queries.numpy()))
    arrays = {name: golden.arrays[f"{key}_{name}"] for name in ("scores", "query", "classes", "areas", "masks")}
    np.testing.assert_array_equal(got.queries.numpy()[order], arrays["query"])
    np.testing.assert_array_equal(got.classes.numpy()[order], arrays["classes"])
    masks = got.masks.numpy()[order]
    expected = np.unpackbits(arrays["masks"], axis=1)[:, : masks[0].size].reshape(masks.shape).astype(bool)
    assert (masks != expected).sum() <= loose
    assert np.abs(masks.sum((1, 2)) - arrays["areas"]).sum() <= loose
    np.testing.assert_allclose(got.scores.numpy()[order], arrays["scores"], atol=1e-3 if loose else 1e-6)


@pytest.fixture(scope="module", params=GOLDENS)
def filled(request):
    golden = read_golden("open_vocabulary", request.param)
    return fill_module(lambda: FCCLIP.build(GOLDENS[request.param], text=False, released=True), golden), golden


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_the_released_code(filled, dtype):
    network, golden = filled
    arrays, case = golden.arrays, golden.facts["golden_case"]
    found, prediction = follow(network.to(dtype), golden, dtype)
    valid = arrays["mask_valid"] if "mask_valid" in arrays else None
    stored = [name for name in found if name in arrays]
    for key in stored:
        of_clip = key in ("clip_embed", "outvocab_logits", "out_vocab_prob")
        check_array(golden, key, found[key], rows=valid if of_clip else None)
    for number in range(9):
        blocked = found[f"attn_blocked{number}"][0].numpy()
        key = f"attn_blocked{number}"
        np.testing.assert_array_equal(blocked, read_bits(golden, key, tuple(arrays[f"{key}_shape"])))
    positive = prediction.masks.numpy() > 0
    np.testing.assert_array_equal(positive, read_bits(golden, "pred_masks_positive", positive.shape))
    shown = found["regions"][0].flatten(1).any(1).numpy()
    np.testing.assert_array_equal(shown, valid if valid is not None else ~arrays["pooled_empty"])

    padded, inner = tuple(found["input"].shape[2:]), tuple(case["image_height_width"])
    output = tuple(case["output_height_width"])
    scores, masks = prediction.log_probabilities[0], resize_masks(prediction.masks[0], padded, inner, output)
    check_array(golden, "mask_pred_post", masks)
    semantic = segment_semantic(scores, masks)
    check_array(golden, "sem_seg", semantic)
    # Scores of two labels may be alike to the last digit of float32.
    unlike = 0.0 if dtype == torch.float64 else 1e-3
    assert (semantic.argmax(0).numpy() != arrays["sem_argmax"]).mean() <= unlike
    late = fit_output(
        segment_semantic(scores, resize_masks(prediction.masks[0], padded, padded, padded)), inner, output
    )
    check_array(golden, "sem_seg_late", late)
    assert (late.argmax(0).numpy() != arrays["sem_seg_late_argmax"]).mean() <= unlike
    things, thresholds = case["thing_classes"], case["thresholds"]
    published = thresholds["published"]
    for key, overlap in (("panoptic", published["overlap"]), ("panoptic_low", thresholds["panoptic_low"]["overlap"])):
        got = segment_panoptic(scores, masks, things, least_score=published["object"], least_overlap=overlap)
        check_panoptic(golden, key, got)
    got = segment_instances(scores, masks, things, limit=published["topk"], released=True)
    check_instances(golden, "instance", got, loose=2)


@pytest.mark.parametrize("name", GOLDENS)
def test_post_processing_equals_the_released_code(name):
    golden = read_golden("open_vocabulary", name)
    case = golden.facts["golden_case"]["thresholds"]["post_*"]
    scores, masks = (torch.from_numpy(golden.arrays[f"post_{key}"]) for key in ("mask_cls", "mask_pred"))
    check_array(golden, "post_sem", segment_semantic(scores, masks), tolerance=1e-6)
    for key, least in (("post_panoptic", case["object"]), ("post_panoptic_t08", 0.8)):
        got = segment_panoptic(scores, masks, case["things"], least_score=least, least_overlap=case["overlap"])
        check_panoptic(golden, key, got)
    for key, things in (("post_instance", case["things"]), ("post_instance_allclasses", None)):
        got = segment_instances(scores, masks, things, limit=case["topk"], released=True)
        check_instances(golden, key, got, loose=0)
