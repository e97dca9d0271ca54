"""PANet: worked examples and laws; the paper's loops written out."""

import pytest
import torch
from torch.nn import functional

from hardlook.networks.one_shot.backbones import build_backbone
from hardlook.networks.one_shot.panet import PANet, average_resized, compare


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return PANet.build("vgg16").eval()


@pytest.fixture(scope="module")
def pairs():
    rng = torch.Generator().manual_seed(1)
    query, supports = torch.randn(3, 3, 33, 33, generator=rng), torch.randn(3, 2, 3, 33, 33, generator=rng)
    masks = torch.zeros(3, 2, 33, 33, dtype=torch.uint8)
    for pair in range(3):
        masks[pair, :, 4 * pair : 4 * pair + 12, 8:24] = 1
    masks[:, :, :2] = 255
    return query, supports, masks


def test_the_mean_of_a_mask_is_that_of_the_maps_resized_to_it():
    maps, masks = torch.randn(2, 5, 4, 6, dtype=torch.float64), torch.rand(2, 30, 41) < 0.3
    larger = functional.interpolate(maps, (30, 41), mode="bilinear")
    expected = (larger * masks[:, None]).sum((2, 3)) / masks.sum((1, 2))[:, None]
    torch.testing.assert_close(average_resized(maps, masks), expected, rtol=1e-6, atol=1e-6)
    assert average_resized(maps, masks & False).abs().max() == 0


def test_ignored_pixels_are_in_neither_mean(network):
    maps = torch.tensor([[[[1.0, 2.0, 30.0]]]])
    background, shown = network.describe((maps,), torch.tensor([[[0, 1, 255]]]))
    torch.testing.assert_close(torch.cat([background, shown]).flatten(), torch.tensor([1.0, 2.0]), rtol=1e-4, atol=0)


def test_scores_are_twenty_cosines():
    maps = torch.tensor([3.0, 4.0]).view(1, 2, 1, 1)
    scores = compare(maps, [torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]])])
    torch.testing.assert_close(scores.flatten(), torch.tensor([12.0, 16.0]))


def test_the_object_of_an_identical_support_is_found(network):
    mask = torch.zeros(1, 6, 6, dtype=torch.uint8)
    mask[:, 1:4, 2:5] = 1
    maps = torch.stack([mask, 1 - mask], 1).float()
    described = tuple(one[:, None] for one in network.describe((maps,), mask))
    assert torch.equal(network.match((maps,), described, (6, 6)).argmax(1), mask.long())


@pytest.mark.parametrize("backbone", ["vgg16", "resnet50", "resnet50-keras"])
def test_features_are_an_eighth_of_the_image(backbone):
    with torch.device("meta"):
        built = PANet.build(backbone)
        (maps,) = built.encode(torch.zeros(1, 3, 65, 97))
    assert maps.shape[2:] == (9, 13)


def test_vgg16_has_no_last_relu_and_keeps_its_names(network):
    with torch.no_grad():
        (maps,) = network.encode(torch.randn(1, 3, 33, 33))
    assert maps.min() < 0
    assert network.encoder.state_dict().keys() == build_backbone("vgg16").state_dict().keys()
    assert network.encoder.features[-3].dilation == (2, 2)


def test_pairs_do_not_mix_and_supports_have_no_order(network, pairs):
    query, supports, masks = pairs
    order = torch.tensor([2, 0, 1])
    with torch.inference_mode():
        together = network(query, supports, masks)
        torch.testing.assert_close(network(query[order], supports[order], masks[order]), together[order])
        torch.testing.assert_close(network(query, supports.flip(1), masks.flip(1)), together)
        described = network.describe(network.encode(supports[1]), masks[1])
        alone = network.match(network.encode(query[1:2]), tuple(one[None] for one in described), (33, 33))
        torch.testing.assert_close(alone, together[1:2], atol=1e-4, rtol=1e-4)
        assert network(query, supports, torch.zeros_like(masks)).isfinite().all()
        with torch.autocast("cpu", torch.bfloat16):
            assert network(query, supports, masks).isfinite().all()


def align_one_by_one(query, scores, supports, masks):
    """The alignment of section 3.4 as loops over pairs and supports."""
    total = 0.0
    for maps, found, shown, truths in zip(query, scores, supports, masks, strict=True):
        predicted = found.argmax(0)
        if not predicted.any():
            continue
        means = [maps[:, predicted == label].sum(1) / ((predicted == label).sum() + 1e-5) for label in (0, 1)]
        for support, truth in zip(shown, truths, strict=True):
            cosines = [20 * functional.cosine_similarity(support, mean[:, None, None], dim=0) for mean in means]
            larger = functional.interpolate(torch.stack(cosines)[None], truth.shape, mode="bilinear")
            total = total + functional.cross_entropy(larger, truth[None].long(), ignore_index=255)
    return total / (masks.shape[0] * masks.shape[1])


def test_the_alignment_is_that_of_the_paper(network, pairs):
    _, _, masks = pairs
    query, supports = torch.randn(3, 7, 5, 5), torch.randn(3, 2, 7, 5, 5)
    scores = torch.randn(3, 2, 5, 5)
    scores[1, 0] = 100  # nothing is found in the second query
    expected = align_one_by_one(query, scores, supports, masks)
    torch.testing.assert_close(network.align(query, scores, supports, masks), expected)


def test_the_loss_adds_both_directions(network, pairs):
    query, supports, masks = pairs
    loss, logits = network.loss(query, masks[:, 0], supports, masks)
    plain = functional.cross_entropy(logits, masks[:, 0].long(), ignore_index=255)
    network.alignment = 0.5
    halved, _ = network.loss(query, masks[:, 0], supports, masks)
    network.alignment = 1.0
    torch.testing.assert_close(halved - plain, (loss - plain) / 2)
    torch.testing.assert_close(logits, network(query, supports, masks), atol=1e-4, rtol=1e-4)
    loss.backward()
    assert all(one.grad is not None for one in network.parameters())
    network.zero_grad()
