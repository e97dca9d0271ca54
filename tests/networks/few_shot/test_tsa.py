"""TSA and DETA: adapters as modules, Adadelta of torch, weights by hand, and a wrong support."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot import tsa
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.tsa import Deta, Tsa, draw_places, mean_of_classes, nearest_mean_loss, weigh_regions


def make(kind=Tsa, **options):
    torch.manual_seed(0)
    backbone = build_backbone("conv64f", channels=4)
    return kind(backbone, channels=4, classes=6, **{"steps": 3, **options}).double().eval()


def draw_images(tasks=2, ways=3, shots=2):
    rng = torch.Generator().manual_seed(2)
    support = torch.randn(tasks, ways, shots, 3, 16, 16, generator=rng, dtype=torch.float64)
    query = torch.randn(tasks, 4, 3, 16, 16, generator=rng, dtype=torch.float64)
    return Episodes(support, query, keys=("a", "b", "c")[:tasks])


class Adapter(nn.Module):
    """A 1 x 1 convolution beside another one, as the paper draws it."""

    def __init__(self, plain):
        super().__init__()
        self.plain = plain
        self.beside = nn.Conv2d(plain.in_channels, plain.out_channels, 1, bias=False).double()
        nn.init.eye_(self.beside.weight.data[..., 0, 0]).mul_(1e-4)

    def forward(self, x):
        return self.plain(x) + self.beside(x)


@pytest.mark.parametrize("together", [1, 8])
def test_the_tuning_is_that_of_adapter_modules_by_torch(together, monkeypatch):
    monkeypatch.setattr(tsa, "TOGETHER", together)
    method, episodes = make(), draw_images()
    before = copy.deepcopy(method.state_dict())
    with torch.no_grad():
        found = method.classify(episodes)
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    for task in range(2):
        network, layer = copy.deepcopy(method.emb_func), nn.Linear(4, 4, bias=False).double()
        nn.init.eye_(layer.weight)
        for number in range(1, 5):
            block = network.get_submodule(f"layer{number}")
            block[0] = Adapter(block[0])
        adapters = [value for name, value in network.named_parameters() if "beside" in name]
        optimiser = torch.optim.Adadelta([{"params": adapters}, {"params": layer.parameters(), "lr": 1.0}], lr=0.1)
        shown = episodes.support[task].flatten(0, 1)

        def score(images, network=network, layer=layer, shown=shown):
            means = layer(network(shown)).unflatten(0, (3, 2)).mean(1)
            return 10 * torch.cosine_similarity(layer(network(images))[:, None], means[None], dim=-1)

        for _ in range(3):
            optimiser.zero_grad()
            functional.cross_entropy(score(shown), torch.tensor([0, 0, 1, 1, 2, 2])).backward()
            optimiser.step()
        torch.testing.assert_close(found[task], score(episodes.query[task]))
        start = make(steps=0).classify(episodes)[task]
        assert (found[task] - start).abs().max() > 1e-3


def test_tuning_fits_the_supports():
    support = draw_images().support
    episodes = Episodes(support, support.flatten(1, 2))
    labels = episodes.support_labels().expand(2, -1)
    losses = [
        functional.cross_entropy(
            make(kind, steps=steps, rate=2.0, map_rate=10.0).classify(episodes).flatten(0, 1), labels.flatten()
        ).item()
        for kind in (Tsa, Deta)
        for steps in (0, 15)
    ]
    assert losses[1] < 0.9 * losses[0] and losses[3] < 0.9 * losses[2]


def test_the_loss_by_hand():
    """Two classes along the axes: cosines 1 to the own mean and 0 to the other."""
    features = torch.tensor([[[2.0, 0.0]], [[0.0, 3.0]]], dtype=torch.float64)
    own, other = np.exp(10.0), 1.0
    assert nearest_mean_loss(features, features[:, 0]).item() == pytest.approx(-np.log(own / (own + other)))
    weights = torch.tensor([[0.0], [0.2]], dtype=torch.float64)
    expected = (np.log(2) - np.log(np.exp(2) / (np.exp(2) + 1))) / 2
    assert nearest_mean_loss(features, features[:, 0], weights).item() == pytest.approx(expected)
    mean = mean_of_classes(torch.tensor([[[1.0], [5.0]]]), torch.tensor([[3.0, 1.0]]))
    assert mean.item() == 2


def test_weights_of_regions_by_plain_loops():
    torch.manual_seed(0)
    regions = torch.randn(3, 2, 4, 5, dtype=torch.float64)
    found = weigh_regions(regions)
    places = [(way, shot, number) for way in range(3) for shot in range(2) for number in range(4)]
    inside, outside = torch.zeros(3, 2, 4).double(), torch.zeros(3, 2, 4).double()
    for place in places:
        near, far = [], []
        for other in places:
            cosine = torch.cosine_similarity(regions[place], regions[other], dim=0)
            if other[0] != place[0]:
                far.append(cosine)
            elif other[1] != place[1]:
                near.append(cosine)
        inside[place], outside[place] = sum(near) / len(near), sum(far) / len(far)
    expected = (inside.flatten(1) / 0.5).softmax(1) / (outside.flatten(1) / 0.5).softmax(1)
    torch.testing.assert_close(found.flatten(1), expected)


def test_one_support_per_class_is_weighed_by_the_others_alone():
    regions = torch.randn(3, 1, 4, 5, generator=torch.Generator().manual_seed(0))
    weights = weigh_regions(regions)
    # The softmax over four regions without neighbours is 1/4, and the other softmax has the sum 1.
    torch.testing.assert_close((1 / weights).sum((1, 2)), torch.full((3,), 4.0))
    assert weights.std() > 0.05


def test_a_support_of_another_class_counts_less():
    rng = torch.Generator().manual_seed(0)
    regions = 2 * torch.randn(3, 1, 1, 8, generator=rng) + torch.randn(3, 4, 5, 8, generator=rng)
    regions[0, 3] = regions[1, 0]
    weights = weigh_regions(regions).mean(-1)
    assert weights[0].argmin() == 3 and weights[0, 3] < 0.5 * weights[0, :3].min()


def test_losses_of_supports_and_regions_are_weighted_and_weights_remembered():
    torch.manual_seed(0)
    features, regions = torch.randn(3, 2, 5), torch.randn(3 * 2 * 4, 5)
    clean = weigh_regions(regions.reshape(3, 2, 4, 5))
    before = torch.rand(3, 2)
    for step, expected in ((0, clean.mean(-1)), (1, 0.7 * before + 0.3 * clean.mean(-1))):
        loss, weights = Deta(regions=4).support_loss(features, regions, before, step)
        torch.testing.assert_close(weights, expected)
        means = mean_of_classes(features, expected)
        parts = (features, expected), (regions.reshape(3, 8, 5), clean.reshape(3, 8))
        torch.testing.assert_close(loss, sum(nearest_mean_loss(part, means, weight) for part, weight in parts))


def test_regions_are_cut_where_they_are_drawn():
    image = torch.arange(8.0).expand(1, 1, 1, 8, 8).clone()
    image[..., 4:, :] += 100
    places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # x, y
    method = Deta(regions=3, place=lambda key, count: places)
    cut = method.cut_regions(image, [""])
    assert cut.shape == (1, 1, 3, 1, 8, 8)
    # Half of the side, enlarged twice: pixel centres lie between those of the image.
    expected = torch.tensor([0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.25])
    torch.testing.assert_close(cut[0, 0, 0, 0, 0], expected)
    torch.testing.assert_close(cut[0, 0, 1, 0, 0], torch.tensor([3.75, 4.25, 4.75, 5.25, 5.75, 6.25, 6.75, 7.0]))
    torch.testing.assert_close(cut[0, 0, 2, 0, 4], expected + 100)


@pytest.mark.parametrize("kind", [Tsa, Deta])
def test_tasks_are_independent(kind):
    method, episodes = make(kind), draw_images()
    alone = method.classify(Episodes(episodes.support[1:], episodes.query[1:], keys=("b",)))
    torch.testing.assert_close(alone, method.classify(episodes)[1:])
    order = [2, 0, 1]
    if kind is Tsa:
        moved = method.classify(Episodes(episodes.support[:, order], episodes.query, keys=episodes.keys))
        torch.testing.assert_close(moved, method.classify(episodes)[:, :, order])
    assert not np.array_equal(draw_places("a", 3), draw_places("b", 3))


def test_queries_meet_the_weighted_means_of_the_classes(monkeypatch):
    """With all weight on the first support of each class, the others might as well not be there."""
    episodes = draw_images(tasks=1)
    first = torch.tensor([[1.0, 0.0]] * 3).double()
    weighted = make(Deta, steps=1, rate=0.0, map_rate=0.0)
    monkeypatch.setattr(
        weighted, "support_loss", lambda features, regions, weights, step: (features.square().mean(), first)
    )
    alone = Episodes(episodes.support[:, :, :1], episodes.query, keys=episodes.keys)
    torch.testing.assert_close(weighted.classify(episodes), make(steps=0).classify(alone))
