"""CAT-Seg: laws, and the released code."""

import copy
import json
import os

import numpy as np
import pytest
import torch
from clip_vit_goldens import Watch, check_array, check_table, fill_network, list_keys, read_image
from goldens import Golden, goldens_folder, read_golden, standard_normal
from torch.nn import functional

from hardlook.networks.open_vocabulary import cat_seg
from hardlook.networks.open_vocabulary.cat_seg import (
    CAT_SEG_SIZES,
    CATSeg,
    CATSegSize,
    ClassAggregation,
    SpatialAggregation,
    build_window_mask,
    choose_classes,
    cut_stretched,
    cut_undistorted,
    merge_windows,
    split_windows,
)
from hardlook.networks.open_vocabulary.clip_text import TEXT_SIZES, TextSize
from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES, ViTSize, normalise

VISUAL = "sem_seg_head.predictor.clip_model.visual"
COST = "sem_seg_head.predictor.transformer"
MASKS = tuple(f"{COST}.layers.{number}.swin_block.block_2.attn_mask" for number in range(2))


@pytest.fixture(scope="module")
def small():
    """A network on patches of 2 pixels, which compares classes at 6 x 6 places."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VIT_SIZES, "small", ViTSize(2, 64, 3, 4, 32))
        patch.setitem(TEXT_SIZES, "small", TextSize(64, 1, 32, vocabulary=20, context=6))
        patch.setitem(CAT_SEG_SIZES, "small", CATSegSize("small", (1, 2)))
        torch.manual_seed(0)
        return CATSeg("small", pooling=4).eval()


@pytest.fixture(scope="module")
def scene():
    """Two images of 40 x 60 pixels, and vectors of three classes."""
    rng = torch.Generator().manual_seed(1)
    return 255 * torch.rand(2, 3, 40, 60, generator=rng), torch.randn(3, 32, generator=rng)


def test_images_do_not_mix_and_classes_have_no_order(small, scene, monkeypatch):
    images, text = scene
    order = torch.tensor([2, 0, 1])
    with torch.no_grad():
        together = small.segment(images, text)
        monkeypatch.setattr(cat_seg, "CHUNK", 2)  # parts that end within an image
        moved = small.segment(images.flip(0), text[order])
    assert together.shape == (2, 3, 40, 60) and 0 < together.min() and together.max() < 1
    torch.testing.assert_close(moved, together.flip(0)[:, order], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(together[0], together[1], atol=1e-4)


def test_padding_stays_in_the_result_only_if_released(small, scene):
    images, text = scene
    released = copy.copy(small)
    released.released = True
    with torch.no_grad():
        # The released network sees 64 x 64 pixels, of which it keeps the first 40 x 60 of 96 x 96 cells.
        padded = functional.pad(cat_seg.normalise(images), (0, 4, 0, 24))
        expected = functional.interpolate(small(padded, text).sigmoid()[..., :40, :60], (40, 60), mode="bilinear")
        torch.testing.assert_close(released.segment(images, text), expected)
        assert not torch.allclose(small.segment(images, text), expected, atol=1e-4)
        whole = functional.interpolate(images, (96, 128))
        torch.testing.assert_close(released.segment(whole, text), small.segment(whole, text))


def test_windows_of_one_colour_are_that_colour_everywhere(small, scene):
    _, text = scene
    images = torch.tensor([200.0, 20.0, 90.0])[None, :, None, None].expand(1, 3, 40, 60)
    with torch.no_grad():
        tile = functional.interpolate(small(cat_seg.normalise(images), text), (384, 384), mode="bilinear").sigmoid()
        scores = small.segment_windows(images, text, (640, 640))
    whole = functional.interpolate(tile, (640, 640), mode="bilinear")
    # The upper left quarter is in the first window alone; the centre is in all four.
    torch.testing.assert_close(scores[..., :256, :256], (tile[..., :256, :256] + whole[..., :256, :256]) / 2)
    four = sum(tile[..., top : top + 128, left : left + 128] for top in (256, 0) for left in (256, 0)) / 4
    middle = (four + whole[..., 256:384, 256:384]) / 2
    torch.testing.assert_close(scores[..., 256:384, 256:384], middle)


def test_of_too_many_classes_the_likeliest_are_compared(small, scene, monkeypatch):
    images, _ = scene
    text = torch.randn(6, 32, generator=torch.Generator().manual_seed(5))
    monkeypatch.setattr(cat_seg, "CLASSES", 4)
    monkeypatch.setattr(cat_seg, "choose_classes", lambda cost: choose_classes(cost, 4))
    with torch.no_grad():
        logits = small(cat_seg.normalise(images), text)
        for image, one in zip(images, logits, strict=True):
            kept = one.amax((1, 2)) > -100
            assert kept.sum() == 4 and one[~kept].eq(-100).all()
            alone = small(cat_seg.normalise(image[None]), text[kept])[0]
            torch.testing.assert_close(one[kept], alone, atol=1e-4, rtol=1e-4)
    cost = torch.tensor([[0.1, 0.9], [0.5, 0.6], [0.0, 0.7]])[None, :, None]
    assert sorted(choose_classes(cost, 2)[0].tolist()) == [0, 2]


def test_windows_are_cut_and_put_together():
    maps = torch.arange(2 * 24 * 24 * 3).reshape(2, 24, 24, 3)
    windows = split_windows(maps)
    assert torch.equal(windows[1, 1].reshape(12, 12, 3), maps[1, :12, 12:]) and torch.equal(
        merge_windows(windows), maps
    )


def test_places_that_the_shift_brings_together_do_not_see_each_other():
    mask = build_window_mask(24, 6)
    rows, columns = torch.meshgrid(torch.arange(24), torch.arange(24), indexing="ij")
    where = torch.stack((rows, columns), 2)[None].roll((-6, -6), (1, 2))
    where = split_windows(where)[0].float()
    apart = (where[:, :, None] - where[:, None]).abs().amax(3) >= 12
    assert torch.equal(mask, apart * -100.0)


def test_class_maps_do_not_mix_over_places_alone():
    torch.manual_seed(0)
    layer, x, place = SpatialAggregation(), torch.randn(1, 128, 2, 24, 24), torch.randn(1, 128, 24, 24)
    moved = x.clone()
    moved[:, :, 1, 0, 0] += torch.randn(128)
    with torch.no_grad():
        change = (layer(moved, place) - layer(x, place)).abs().amax((0, 1))
    assert change[0].eq(0).all() and change[1, :12, :12].min() > 0
    assert change[1, 18:].eq(0).all(), "half a window beyond the first one, and no further"


def test_a_class_at_a_place_depends_on_all_classes_there_and_on_no_other_place():
    torch.manual_seed(0)
    layer, x, word = ClassAggregation(), torch.randn(1, 128, 3, 4, 4), torch.randn(1, 3, 128)
    moved = x.clone()
    moved[:, :, 1, 2, 2] += torch.randn(128)
    with torch.no_grad():
        change = (layer(moved, word, 1) - layer(x, word, 1)).abs().amax((0, 1)) > 1e-6
    assert change[:, 2, 2].all() and change.sum() == 3


def test_pixels_without_label_are_left_out_of_the_loss_unless_released(small):
    logits = torch.tensor([2.0, -1.0])[None, :, None, None].expand(1, 2, 4, 4)
    labels = torch.full((1, 4, 4), 255)
    labels[0, 0, 0] = 0
    counted = functional.binary_cross_entropy_with_logits(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
    none = functional.binary_cross_entropy_with_logits(torch.tensor([2.0, -1.0]), torch.zeros(2))
    released = copy.copy(small)
    released.released = True
    torch.testing.assert_close(small.loss(logits, labels), counted)
    torch.testing.assert_close(released.loss(logits, labels), (counted + 15 * none) / 16)


def test_gradients_reach_everything_and_lower_precision_runs(small, scene):
    images, text = scene
    network = copy.deepcopy(small)
    logits = network(cat_seg.normalise(images[:1]), text)
    network.loss(logits, torch.zeros(1, 40, 60, dtype=torch.long)).backward()
    without = {name for name, one in network.named_parameters() if one.grad is None}
    texts = ("positional_embedding", "text_projection", "logit_scale", "transformer.", "token_embedding", "ln_final")
    last = "visual.transformer.resblocks.2.attn."  # has no attention in its dense form
    allowed = tuple(f"sem_seg_head.predictor.clip_model.{name}" for name in (*texts, last))
    assert without and all(name.startswith(allowed) for name in without)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        lower = small(cat_seg.normalise(images[:1]), text)
    torch.testing.assert_close(lower.float(), logits.detach(), atol=0.1, rtol=0.1)


@pytest.fixture(scope="module")
def filled():
    golden = read_golden("open_vocabulary", "catseg_vit_b_16")
    with torch.device("meta"):
        network = CATSeg("catseg_vit_b_16", released=True)
    network = network.to_empty(device="cpu")
    for name in MASKS:
        network.state_dict()[name].copy_(build_window_mask(24, 6))
    return golden, fill_network(network, golden, MASKS)


def read_text(golden, case, dtype):
    """The texts of a case, stored or drawn."""
    if f"{case}/text" in golden.arrays:
        return torch.from_numpy(golden.arrays[f"{case}/text"]).to(dtype)
    text = standard_normal(f"text:{case}", (golden.facts["cases"][case]["classes"], 512))
    text = (text / np.linalg.norm(text, axis=1, keepdims=True)).astype(np.float32)
    np.testing.assert_allclose(text[[0, -1]], golden.arrays[f"{case}/text_first_last"], atol=1e-7)
    return torch.from_numpy(text).to(dtype)


def compute(network, golden, case, dtype):
    """All arrays that the goldens have of a case."""
    facts, text = golden.facts["cases"][case], read_text(golden, case, dtype)
    network.pooling = facts["pooling"][0]
    blocks = {number: f"{VISUAL}.transformer.resblocks.{number - 1}" for number in (4, 8, 11)}
    layers = {
        f"layer{n}_{kind}": f"{COST}.layers.{n}.{name}"
        for n in range(2)
        for kind, name in (("swin1", "swin_block.block_1"), ("spatial", "swin_block"), ("class", "attention"))
    }
    parts = {"cost_embed": "conv1", "guidance": "guidance_projection", "text_guidance": "text_guidance_projection"}
    parts |= {f"decoder_guidance{n}": f"decoder_guidance_projection.{n}" for n in range(2)}
    parts |= {name: name for name in ("decoder1", "decoder2")}
    parts = layers | {key: f"{COST}.{name}" for key, name in parts.items()} | {"res4": "upsample1", "res5": "upsample2"}
    names = ["", f"{VISUAL}.conv1", f"{VISUAL}.ln_post", *blocks.values(), *parts.values()]
    run = network.segment_windows if facts["sliding"] else network.segment
    with torch.no_grad(), Watch(network, names) as found:
        scores = run(read_image(golden, case, dtype), text, tuple(facts["output_size"]))[0]
    got = {key: torch.cat(found[name]) for key, name in parts.items()}
    got |= {f"clip_block{number}": found[name][0].transpose(0, 1) for number, name in blocks.items()}
    dense = found[f"{VISUAL}.ln_post"][0] @ network.clip.visual.proj
    cosines = functional.normalize(dense[:, 1:], dim=2) @ functional.normalize(text, dim=1).T
    dropped = found[""][0].flatten(2).amax(2)[0].eq(-100).nonzero()[:, 0]
    return got | {
        "clip_input": found[f"{VISUAL}.conv1", "input"][0],
        "clip_dense": dense,
        "cost": found[f"{COST}.conv1", "input"][0],
        "logits": found[""][0],
        "sem_seg": scores,
        "max_cosine_per_class": cosines[0].amax(0),
        "dropped_classes": dropped,
        "sem_seg_grid32": scores[:, ::32, ::32],
    }


def check_case(network, golden, case, dtype):
    got = compute(network, golden, case, dtype)
    for key in list_keys(golden, case):
        check_array(golden, f"{case}/{key}", got[key])


def test_goldens_of_the_first_case(filled):
    golden, network = filled
    check_case(network, golden, next(iter(golden.facts["cases"])), torch.float32)


def test_goldens_of_all_cases(filled, request):
    # Minutes on one thread: windows, and more classes than are compared with each other.
    if not request.config.getoption("--goldens", default=False) and "HARDLOOK_GOLDENS" not in os.environ:
        pytest.skip("takes minutes: pass --goldens")
    golden, network = filled
    exact = copy.deepcopy(network).double()
    for case, facts in golden.facts["cases"].items():
        # In float64, too, the released code resizes the image in float32 before windows are cut.
        if facts["sliding"] or f"{case}/sem_seg_f64" not in golden.arrays:
            check_case(network, golden, case, torch.float32)
        else:
            check_case(exact, golden, case, torch.float64)


@pytest.mark.parametrize("size", ["catseg_vit_b_16", "catseg_vit_l_14_336"])
def test_parameters_have_the_names_shapes_and_order_of_the_released_network(size):
    path = goldens_folder("open_vocabulary") / f"{size}.json"
    with torch.device("meta"):
        check_table(CATSeg(size), Golden(size, json.loads(path.read_text()), {}))


def test_the_filler_counts_as_often_as_classes_are_missing():
    """Linear attention among all 256 tokens, one by one."""
    torch.manual_seed(0)
    layer = ClassAggregation().eval()
    with torch.no_grad():
        for one in (layer.padding_tokens, layer.padding_guidance):
            one.normal_()
        x, word = torch.randn(1, 128, 3, 2, 2), torch.randn(1, 3, 128)
        found = layer(x, word, 1)
        tokens = x.reshape(128, 3, 4).permute(2, 1, 0)
        every = torch.cat((tokens, layer.padding_tokens.expand(4, 253, -1)), 1)
        guide = torch.cat((word.expand(4, -1, -1), layer.padding_guidance.expand(4, 253, -1)), 1)
        normed, attention = layer.norm1(every), layer.attention
        joined = torch.cat((normed, guide), 2)
        query, key, value = (
            one.reshape(4, 256, 4, 32).transpose(1, 2)
            for one in (functional.elu(attention.q(joined)) + 1, functional.elu(attention.k(joined)) + 1,
                        attention.v(normed))
        )  # fmt: skip
        weights = query @ key.transpose(2, 3)
        seen = (weights @ value / (weights.sum(3, keepdim=True) + 1e-6)).transpose(1, 2).flatten(2)
        tokens = (every + seen)[:, :3]
        tokens = tokens + layer.MLP(layer.norm2(tokens))
    expected = x + tokens.permute(2, 1, 0).reshape(x.shape)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [(700, 400), (500, 1000), (100, 900), (384, 384)])
def test_windows_lie_where_they_were_cut_and_the_padding_is_gone(size):
    """Views answered by what they show give the picture back, but for its edges, which the resized whole blurs."""
    rows = torch.linspace(0, 255, size[0])[:, None].expand(size)
    columns = torch.linspace(0, 255, size[1]).expand(size)
    image = torch.stack((rows, columns, torch.full(size, 128.0)))
    views = cut_undistorted(image)
    assert views.pixels.shape == (len(views.corners) + 1, 3, 384, 384)
    assert max(top for top, _ in views.corners) + 384 == max(384, size[0])
    assert views.whole[0] / views.whole[1] == pytest.approx(size[0] / size[1], rel=0.02)
    scores = views.merge(views.pixels, size)
    expected = normalise(image[None])[0].sigmoid()
    assert (scores - expected).abs().max() < 0.02
    assert views.merge(views.pixels, (50, 70)).shape == (3, 50, 70)
    # The largest of a few channels at a time.
    assert torch.equal(views.label(views.pixels, size, most=2), scores.argmax(0))


def test_stretched_views_are_four_windows_of_a_square_and_the_whole(small, scene):
    images, text = scene
    views = cut_stretched(images[0])
    assert views.corners == ((0, 0), (0, 256), (256, 0), (256, 256)) and views.size == views.inner == (640, 640)
    with torch.no_grad():
        logits = small(views.pixels, text)
        torch.testing.assert_close(
            views.merge(logits, (40, 60)), small.segment_windows(images, text)[0], atol=1e-5, rtol=1e-4
        )
