"""The contrastive method: its losses by hand and by plain loops, its views, and learning."""

import math

import pytest
import torch
from torch.nn import functional

from hardlook.networks.few_shot import contrastive
from hardlook.networks.few_shot.contrastive import Contrastive, compare_maps, contrast, draw_view
from hardlook.networks.few_shot.contrastive_views import nt_xent
from hardlook.networks.few_shot.method import Episodes


def test_contrast_by_hand():
    """Anchor 0 has the positives 1 and 2 among three; anchor 1 has none and does not count."""
    similarities = torch.tensor([[9.0, 0.0, math.log(2), 0.0], [0.0, 0.0, 0.0, 0.0]])
    positives = torch.tensor([[False, True, True, False], [False] * 4])
    allowed = torch.tensor([[False, True, True, True], [True] * 4])
    expected = -(math.log(1 / 4) + math.log(2 / 4)) / 2
    assert contrast(similarities, positives, allowed).item() == pytest.approx(expected)


def test_contrast_of_whole_images_is_that_of_simclr():
    torch.manual_seed(0)
    views = torch.randn(2, 5, 3)
    units = functional.normalize(views.flatten(0, 1), dim=-1)
    others = ~torch.eye(10, dtype=torch.bool)
    partners = torch.eye(10, dtype=torch.bool).roll(5, 0)
    found = contrast(units @ units.T / 0.2, partners, others)
    torch.testing.assert_close(found, nt_xent(*views, 0.2))


def test_maps_are_compared_position_by_position():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4, 5, 6, dtype=torch.float64)
    found = compare_maps(query, key, value)
    for b in range(4):
        for a in range(4):
            total = 0.0
            for j in range(5):
                attention = (key[a] @ query[b, j] / math.sqrt(6)).softmax(0)
                total += torch.cosine_similarity(attention @ value[a], value[b, j], dim=0)
            torch.testing.assert_close(found[b, a], total / 5)


def make(**options):
    torch.manual_seed(0)
    return Contrastive(torch.nn.Conv2d(3, 6, 3, padding=1), channels=6, classes=4, width=5, **options)


def test_weights_add_up():
    images, labels = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 1, 3])
    plain, scores = make(weights=(0, 0, 0)).class_loss(images, labels)
    torch.testing.assert_close(plain, functional.cross_entropy(scores, labels.repeat(2)))
    parts = [
        make(weights=weights).class_loss(images, labels)[0] - plain for weights in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    assert min(parts) > 0.1
    torch.testing.assert_close(
        make(weights=(1, 2, 3)).class_loss(images, labels)[0] - plain, parts[0] + 2 * parts[1] + 3 * parts[2]
    )
    # Images of one class agree in the third: with other labels only that changes.
    other = torch.tensor([0, 1, 2, 3])
    for place, weights in enumerate(((1, 0, 0), (0, 1, 0), (0, 0, 1))):
        base = make(weights=(0, 0, 0)).class_loss(images, other)[0]
        moved = make(weights=weights).class_loss(images, other)[0] - base
        assert torch.allclose(moved, parts[place], atol=1e-5) is (place < 2)
        if place == 2:  # two views of an image are of one class: of different images that is all
            torch.testing.assert_close(moved, parts[0])


def test_parts_are_compared_with_vectors_and_with_parts():
    images = torch.randn(6, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    method, labels = make(weights=(0, 1, 0)), torch.tensor([0, 1, 2])
    loss, scores = method.class_loss(images, labels)
    positions = method.emb_func(images).flatten(2).mT
    query, key, value, part = (layer(positions) for layer in method.map_projections)
    vectors = method.projection(positions.mean(1))
    with_vectors = torch.cosine_similarity(vectors[:, None, None], part[None], dim=-1).mean(-1)
    others, partners = ~torch.eye(6, dtype=torch.bool), torch.eye(6, dtype=torch.bool).roll(3, 0)
    parts = [contrast(found / 0.1, partners, others) for found in (with_vectors, compare_maps(query, key, value))]
    torch.testing.assert_close(loss - functional.cross_entropy(scores, labels.repeat(2)), sum(parts))


def test_views_are_mirrored_and_shifted():
    torch.manual_seed(0)
    images = torch.arange(16.0).reshape(1, 1, 1, 4, 4).expand(3, 40, 2, 4, 4)
    drawn = draw_view(images)
    assert drawn.shape == images.shape and set(drawn.flatten().tolist()) <= set(range(16))
    rows = {tuple(row) for row in drawn[..., 1, :].flatten(0, 2).tolist()}
    assert (4.0, 5.0, 6.0, 7.0) in rows and (7.0, 6.0, 5.0, 4.0) in rows and len(rows) == 2, (
        "a shift below half a pixel"
    )
    wide = draw_view(torch.arange(16.0).expand(1, 100, 1, 16, 16))
    firsts = {row[0] for row in wide[0, :, 0, 0].tolist()}
    assert {0.0, 1.0, 2.0} <= firsts and {15.0, 14.0, 13.0} <= firsts and len(firsts) == 6
    assert torch.equal(wide[:, :, :, 0], wide[:, :, :, 5]), "all rows of an image move together"


def easy_maps(tasks=2, ways=3, shots=2, queries=6):
    rng = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(tasks, ways, 1, 3, 4, 4, generator=rng)
    labels = torch.arange(queries).expand(tasks, -1) % ways
    query = centres[torch.arange(tasks)[:, None], labels, 0]
    support = centres + torch.randn(tasks, ways, shots, 3, 4, 4, generator=rng)
    return Episodes(support, query + torch.randn(query.shape, generator=rng), labels)


def test_both_stages_learn():
    torch.manual_seed(0)
    episodes = easy_maps()
    images, labels = torch.randn(8, 3, 4, 4), torch.tensor([0, 1, 2, 3])
    method = make()
    optimiser = torch.optim.Adam(method.parameters(), 0.01)
    for steps in (lambda: method.class_loss(images, labels), lambda: method.loss(episodes)):
        losses = []
        for _ in range(15):
            loss, _ = steps()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0]
    unused = {name for name, value in method.named_parameters() if value.grad is None}
    assert unused <= {
        f"{part}.{end}"
        for part in ("classifier", *(f"map_projections.{n}" for n in range(4)))
        for end in ("weight", "bias")
    }


def test_the_loss_of_episodes_by_plain_loops(monkeypatch):
    """Views that are equal: supports and means appear twice among the keys of a query, scaled by 2 - cosine."""
    monkeypatch.setattr(contrastive, "draw_view", lambda images: images)
    method, found = make(balance=0.5).double().eval(), easy_maps()
    episodes = Episodes(found.support.double(), found.query.double(), found.labels)
    loss, scores = method.loss(episodes)
    torch.testing.assert_close(scores, method.classify(episodes))
    features = method.embed(episodes)
    means, losses = method.centroids(features), []
    for task in range(2):
        keys = method.projection(torch.cat([features.support[task].flatten(0, 1).mean((-2, -1)), means[task]]))
        owners = torch.tensor([0, 0, 1, 1, 2, 2, 0, 1, 2])
        for query, label in zip(features.query[task], episodes.labels[task], strict=True):
            cosine = torch.cosine_similarity(method.projection(query.mean((-2, -1)))[None], keys)
            logs = ((2 - cosine.detach()) * cosine / 0.1).repeat(2).log_softmax(0)
            losses.append(-logs[owners.repeat(2) == label].mean())
    expected = functional.cross_entropy(scores.flatten(0, 1), episodes.labels.flatten())
    total = expected + 0.5 * torch.stack(losses).mean()
    torch.testing.assert_close(loss, total)
    weight = method.projection[0].weight
    torch.testing.assert_close(*(torch.autograd.grad(one, weight, retain_graph=True)[0] for one in (loss, total)))


def test_permuted_classes_permute_the_scores():
    method, episodes = make().eval(), easy_maps()
    order = torch.tensor([2, 0, 1])
    moved = method.classify(Episodes(episodes.support[:, order], episodes.query))
    torch.testing.assert_close(moved, method.classify(episodes)[:, :, order])
