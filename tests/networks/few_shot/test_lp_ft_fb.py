"""LP-FT-FB: Firth's estimate by hand, the tuning against plain torch, and laws."""

import copy
import math

import pytest
import torch

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot import lp_ft_fb
from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.lp_ft_fb import LpFtFb, firth_loss
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.support_heads import HeadTraining

QUICK = HeadTraining(epochs=5, batch=6)


def make(**options):
    torch.manual_seed(0)
    backbone = build_backbone("conv64f", channels=4)
    method = LpFtFb(backbone, channels=4, classes=6, head=QUICK, **options).double()
    rng = torch.Generator().manual_seed(1)
    for name, value in backbone.named_buffers():
        if "running" in name:
            value.copy_(torch.rand(value.shape, generator=rng, dtype=torch.float64))
    return method.eval()


def draw_images(tasks=2, shots=2):
    rng = torch.Generator().manual_seed(2)
    support = torch.randn(tasks, 3, shots, 3, 16, 16, generator=rng, dtype=torch.float64)
    query = torch.randn(tasks, 4, 3, 16, 16, generator=rng, dtype=torch.float64)
    return Episodes(support, query, keys=("a", "b", "c")[:tasks])


@pytest.mark.parametrize(("hits", "count"), [(0, 3), (3, 3), (1, 4)])
def test_frequencies_have_the_estimate_of_firth(hits, count):
    """(k + 1/2) / (n + 1): the loss of a model with a bias alone is flat there."""
    share = (hits + 0.5) / (count + 1)
    bias = torch.tensor([share, 1 - share], dtype=torch.float64).log().requires_grad_()
    labels = (torch.arange(count) >= hits).long()
    firth_loss(bias.expand(count, 2), labels, 1 / count).backward()
    torch.testing.assert_close(bias.grad, torch.zeros(2, dtype=torch.float64))


def test_without_weight_the_loss_is_the_cross_entropy():
    scores, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(firth_loss(scores, labels, 0), torch.nn.functional.cross_entropy(scores, labels))
    uniform = firth_loss(torch.zeros(5, 3), labels, 0.5)
    assert uniform.item() == pytest.approx(1.5 * math.log(3))


def test_without_steps_it_is_the_probe():
    method, episodes = make(steps=0), draw_images()
    plain = Baseline(method.emb_func, channels=4, head=QUICK).double().eval()
    torch.testing.assert_close(method.classify(episodes), plain.classify(episodes))


@pytest.mark.parametrize("together", [1, 8])
def test_the_tuning_is_plain_sgd_of_each_task(together, monkeypatch):
    monkeypatch.setattr(lp_ft_fb, "TOGETHER", together)
    method, episodes = make(steps=3, rate=0.05, firth=0.3), draw_images()
    before = copy.deepcopy(method.state_dict())
    with torch.no_grad():
        found = method.classify(episodes)
        support = method.embed(episodes).support.flatten(1, 2)
    labels = episodes.support_labels()
    probe = QUICK.fit(support, labels, 3, ("a", "b"))
    for task in range(2):
        network, layer = copy.deepcopy(method.emb_func), torch.nn.Linear(4, 3).double()
        layer.load_state_dict({name: value[task] for name, value in probe.items()})
        optimiser = torch.optim.SGD([*network.parameters(), *layer.parameters()], 0.05, momentum=0.9)
        for _ in range(3):
            optimiser.zero_grad()
            firth_loss(layer(network(episodes.support[task].flatten(0, 1))), labels, 0.3).backward()
            optimiser.step()
        torch.testing.assert_close(found[task], layer(network(episodes.query[task])))
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())


def test_tuning_fits_the_supports_and_the_penalty_makes_them_less_sure():
    rng = torch.Generator().manual_seed(0)
    support = torch.randn(2, 3, 2, 6, generator=rng, dtype=torch.float64)
    episodes = Episodes(support, support.flatten(1, 2))
    torch.manual_seed(0)
    network = torch.nn.Linear(6, 6)
    plain, firm, soft = (
        LpFtFb(network, channels=6, head=QUICK, steps=steps, rate=0.1, firth=firth)
        .double()
        .classify(episodes)
        .softmax(-1)
        .amax(-1)
        .mean()
        for steps, firth in ((0, 0.0), (15, 0.0), (15, 2.0))
    )
    assert firm > plain + 0.01 and soft < firm - 0.01


def test_a_probe_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="linear probe"):
        LpFtFb(head=HeadTraining("cosine"))
