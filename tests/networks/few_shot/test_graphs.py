"""TPN, GNN and SIB: laws of their definitions, a peer, and tasks that are easy."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hardlook.networks.few_shot.gnn import Gnn
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.sib import Sib
from hardlook.networks.few_shot.tpn import Tpn


def easy(tasks=3, ways=4, shots=2, queries=8, size=6, seed=0):
    """Classes far apart."""
    rng = torch.Generator().manual_seed(seed)
    centres = 6 * torch.randn(tasks, ways, size, generator=rng, dtype=torch.float64)
    labels = torch.arange(queries).expand(tasks, -1) % ways
    support = centres[:, :, None] + torch.randn(tasks, ways, shots, size, generator=rng, dtype=torch.float64) / 3
    query = centres.gather(1, labels[..., None].expand(-1, -1, size))
    return Episodes(support, query + torch.randn(query.shape, generator=rng, dtype=torch.float64) / 3, labels)


def make(kind, **options):
    torch.manual_seed(0)
    return kind(channels=6, **options).double().eval()


METHODS = [(Tpn, {}), (Gnn, {"ways": 4}), (Sib, {"ways": 4})]


@pytest.mark.parametrize(("kind", "options"), METHODS)
def test_tasks_are_independent_and_so_are_queries_unless_transductive(kind, options):
    method, episodes = make(kind, **options), easy()
    scores = method.classify(episodes)
    one = replace(episodes, support=episodes.support[1:2], query=episodes.query[1:2])
    torch.testing.assert_close(method.classify(one)[0], scores[1], rtol=1e-9, atol=1e-10)
    fewer = method.classify(replace(one, query=one.query[:, :2]))[0]
    assert torch.allclose(fewer, scores[1, :2], rtol=1e-9) is not method.transductive


@pytest.mark.parametrize(("kind", "options"), [(Tpn, {}), (Sib, {"ways": 4})])
def test_easy_tasks_are_solved_before_training(kind, options):
    episodes = easy()
    assert (make(kind, **options).classify(episodes).argmax(-1) == episodes.labels).double().mean() > 0.9


def test_the_order_of_the_supports_of_a_class_does_not_matter():
    episodes = easy()
    turned = replace(episodes, support=episodes.support.flip(2))
    for kind, options in METHODS:
        method = make(kind, **options)
        torch.testing.assert_close(method.classify(turned), method.classify(episodes), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("neighbours", [2, 100])
def test_tpn_is_label_propagation_on_its_graph(neighbours):
    """The series sum of (alpha S)^k Y in place of the solved system; an edge stays that either image keeps."""
    method, episodes = make(Tpn, neighbours=neighbours), easy(tasks=1)
    with torch.no_grad():
        images = torch.cat([episodes.support.flatten(1, 2), episodes.query], 1)[0]
        widths = torch.nn.functional.softplus(method.width(images)) + 1e-3
        scaled = (images / widths).numpy()
    edges = np.exp(-((scaled[:, None] - scaled[None]) ** 2).sum(-1) / 2 / scaled.shape[1])
    np.fill_diagonal(edges, 0)
    kept = edges >= np.sort(edges)[:, -min(neighbours, len(edges) - 1)][:, None]
    assert (kept != kept.T).any() == (neighbours == 2)
    edges *= kept | kept.T
    degrees = edges.sum(1)
    graph = edges / np.sqrt(degrees[:, None] * degrees[None])
    labels = np.zeros((len(images), 4))
    labels[np.arange(8), np.repeat(np.arange(4), 2)] = 1
    total, term = labels.copy(), labels
    for _ in range(6000):
        term = 0.99 * graph @ term
        total += term
    np.testing.assert_allclose(method.classify(episodes)[0].detach(), total[8:], rtol=1e-6, atol=1e-12)
    # The loss is over supports and queries.
    truth = np.concatenate([np.repeat(np.arange(4), 2), episodes.labels[0]])
    logs = total - np.log(np.exp(total).sum(1, keepdims=True))
    assert method.loss(episodes)[0].item() == pytest.approx(-logs[np.arange(16), truth].mean(), rel=1e-6)


def test_gnn_fits_its_tasks():
    torch.manual_seed(0)
    method, drawn = Gnn(channels=6, ways=3), easy(tasks=4, ways=3, queries=6)
    episodes = replace(drawn, support=drawn.support.float(), query=drawn.query.float())
    optimiser = torch.optim.Adam(method.parameters(), 1e-2)
    losses = []
    for _ in range(25):
        loss, _ = method.loss(episodes)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[0] > 0.9 and losses[-1] < 0.3


def test_sib_without_steps_is_the_cosine_with_class_means():
    episodes = easy()
    method = make(Sib, ways=4, steps=0, scale=1.0)
    means = episodes.support.mean(2)
    expected = torch.nn.functional.cosine_similarity(episodes.query[:, :, None], means[:, None], dim=-1)
    torch.testing.assert_close(method.classify(episodes), expected)
    moved = make(Sib, ways=4, steps=3, inner_rate=0.5, scale=1.0).classify(episodes)
    assert not torch.allclose(moved, expected)


def test_the_network_of_sib_learns_from_the_steps_that_it_makes():
    """The gradient of its last bias, by differences."""
    method, episodes = make(Sib, ways=4, inner_rate=0.5, scale=1.0).train(), easy(tasks=1)
    bias = method.dni[2].bias
    method.loss(episodes)[0].backward()
    for place in range(4):
        found = []
        for step in (1e-4, -1e-4):
            with torch.no_grad():
                bias[place] += step
            found.append(float(method.loss(episodes)[0].detach()))
            with torch.no_grad():
                bias[place] -= step
        assert float(bias.grad[place]) == pytest.approx((found[0] - found[1]) / 2e-4, rel=1e-4)
    assert bias.grad.abs().max() > 1e-6


def test_the_backbone_of_sib_is_frozen_for_episodes():
    method = Sib(torch.nn.Linear(6, 6), channels=6, ways=4, classes=9)
    method.start_stage("episodes")
    assert not any(value.requires_grad for value in method.emb_func.parameters())
    method.start_stage("classes")
    assert all(value.requires_grad for value in method.emb_func.parameters())
    assert method.class_loss(torch.randn(5, 6), torch.arange(5))[1].shape == (5, 9)


def test_a_query_of_gnn_may_be_of_any_class_and_supports_show_theirs():
    seen = []
    method, episodes = make(Gnn, ways=4), easy(tasks=1)
    method.edges[0].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0][..., -4:]))
    method.classify(episodes)
    labels = seen[0]  # (queries, query and supports, ways)
    assert torch.equal(labels[:, 0], torch.full((8, 4), 0.25, dtype=torch.float64))
    assert torch.equal(labels[3, 1:], torch.eye(4, dtype=torch.float64).repeat_interleave(2, 0))


def test_sib_follows_the_gradients_that_its_network_passes_on_downhill():
    """With the true gradient of the queries' loss in place of the network's, a step lowers that loss."""
    episodes = easy(tasks=2)
    truth = torch.nn.functional.one_hot(episodes.labels, 4).double()

    class TrueGradient(torch.nn.Module):
        def forward(self, scores):
            return (scores.softmax(-1) - truth) / truth[..., 0].numel()

    losses = []
    for steps in (0, 1, 3):
        method = make(Sib, ways=4, steps=steps, inner_rate=0.1)
        method.dni = TrueGradient()
        losses.append(float(torch.nn.functional.cross_entropy(method.classify(episodes).detach().mT, episodes.labels)))
    assert losses[0] > losses[1] > losses[2]
