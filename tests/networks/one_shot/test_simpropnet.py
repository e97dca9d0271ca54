"""SimPropNet, which was reconstructed from texts: what of a support counts as class and as background."""

import pytest

torch = pytest.importorskip("torch")

from hardlook.networks.one_shot.simpropnet import SimPropNet  # noqa: E402


def test_pixels_without_label_are_neither_class_nor_background():
    network = SimPropNet("resnet50", width=2)
    maps = torch.tensor([[[1.0, 2.0, 4.0]], [[8.0, 16.0, 32.0]]])[None]  # (1, 2, 1, 3)
    _, shown, around = network.describe((maps,), torch.tensor([[[1, 255, 0]]], dtype=torch.uint8))
    assert shown.flatten().tolist() == [1, 8] and around.flatten().tolist() == [4, 32]
    _, shown, around = network.describe((maps,), torch.tensor([[[255, 1, 255]]], dtype=torch.uint8))
    assert shown.flatten().tolist() == [2, 16] and around.flatten().tolist() == [0, 0], "nothing is background"


def test_the_vectors_of_several_supports_are_averaged():
    torch.manual_seed(0)
    network = SimPropNet("resnet50", width=4).eval()
    query, supports = (torch.randn(1, 4, 5, 5),), torch.randn(3, 4, 5, 5)
    masks = (torch.rand(3, 5, 5) > 0.5).to(torch.uint8)
    described = network.describe((supports,), masks)
    means = tuple(one.mean(0, keepdim=True)[None] for one in described)
    together = tuple(one[None] for one in described)
    with torch.no_grad():
        assert torch.allclose(
            network.match(query, together, (9, 9)), network.match(query, means, (9, 9)), rtol=0, atol=1e-6
        )
