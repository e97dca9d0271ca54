"""Self-supervised tasks, contrastive views and cross-domain wrappers: worked examples and laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.contrastive_views import MoCo, SimClr, nt_xent
from hardlook.networks.few_shot.cross_domain import AdversarialTasks, ExplanationGuided, FeatureWise
from hardlook.networks.few_shot.method import Episodes, cross_entropy
from hardlook.networks.few_shot.protonet import ProtoNet
from hardlook.networks.few_shot.self_supervision import (
    Bf3s,
    LabelAugmentedProtoNet,
    SelfSupervisedProtoNet,
    TreeProtoNet,
    choose_permutations,
    shuffle_tiles,
)
from hardlook.networks.few_shot.skd import rotate


def backbone():
    torch.manual_seed(0)
    return build_backbone("conv64f", channels=8)


def images(tasks=2, ways=3, shots=2, queries=6, size=18, seed=0):
    rng = torch.Generator().manual_seed(seed)
    support = torch.randn(tasks, ways, shots, 3, size, size, generator=rng)
    query = torch.randn(tasks, queries, 3, size, size, generator=rng)
    return Episodes(support, query, torch.arange(queries).expand(tasks, -1) % ways)


def test_permutations_are_different_and_tiles_move_as_they_say():
    orders = choose_permutations()
    assert len({tuple(order) for order in orders}) == len(orders) == 35
    assert all(sorted(order) == list(range(9)) for order in orders)
    assert min((orders[i] != orders[j]).sum() for i in range(35) for j in range(i)) >= 6
    image = torch.arange(9.0).reshape(1, 1, 3, 3).repeat_interleave(2, 2).repeat_interleave(2, 3)
    shuffled = shuffle_tiles(image, torch.from_numpy(orders[5:6]))
    assert shuffled[0, 0, ::2, ::2].flatten().tolist() == orders[5].tolist()
    assert torch.equal(shuffle_tiles(image, torch.arange(9)[None]), image)


@pytest.mark.parametrize("task", ["rotation", "jigsaw", "both"])
def test_a_self_supervised_task_adds_its_loss_and_changes_no_score(task):
    torch.manual_seed(0)
    method, episodes = SelfSupervisedProtoNet(backbone(), channels=8, task=task, weight=0.5).eval(), images()
    torch.manual_seed(1)
    loss, scores = method.loss(episodes)
    torch.testing.assert_close(scores, ProtoNet(method.emb_func).classify(episodes))
    plain = ProtoNet(method.emb_func).loss(episodes)[0]
    chance = {"rotation": np.log(4), "jigsaw": np.log(35), "both": np.log(4) + np.log(35)}[task]
    # An untrained classifier is near chance.
    assert (loss - plain).item() == pytest.approx(0.5 * chance, rel=0.5)


def test_bf3s_is_the_mean_over_all_rotations():
    torch.manual_seed(0)
    method = Bf3s(backbone(), channels=8).eval()
    batch = torch.randn(5, 3, 18, 18)
    parts = []
    for quarters in range(4):
        scores = method.rotation(method.emb_func(rotate(batch, quarters)))
        parts.append(functional.cross_entropy(scores, torch.full((5,), quarters)))
    torch.testing.assert_close(method.rotation_loss(batch), torch.stack(parts).mean())


def test_label_augmentation_by_hand():
    method, episodes = LabelAugmentedProtoNet(backbone()).eval(), images(tasks=1)
    scores = method.classify(episodes)[0]
    encode = method.emb_func
    centres = torch.stack(
        [encode(rotate(episodes.support[0, way], quarters)).mean(0) for way in range(3) for quarters in range(4)]
    )
    total = torch.zeros(6, 3)
    for quarters in range(4):
        features = encode(rotate(episodes.query[0], quarters))
        logs = (-torch.cdist(features, centres).square()).log_softmax(1).reshape(6, 3, 4)
        total += logs[:, :, quarters] / 4
    torch.testing.assert_close(scores, total, rtol=1e-4, atol=1e-4)
    loss, again = method.loss(episodes)
    torch.testing.assert_close(again[0], total, rtol=1e-4, atol=1e-4)
    # A query that is turned has the label of its class and its angle.
    losses = []
    for quarters in range(4):
        features = encode(rotate(episodes.query[0], quarters))
        joint = (-torch.cdist(features, centres).square()).log_softmax(1)
        losses.append(-joint[torch.arange(6), 4 * episodes.labels[0] + quarters].mean())
    torch.testing.assert_close(loss, torch.stack(losses).mean(), rtol=1e-4, atol=1e-4)


def test_a_tree_sees_its_rotations():
    torch.manual_seed(0)
    method = TreeProtoNet(torch.nn.Flatten(), channels=3 * 6 * 6).eval()
    features = torch.randn(4, 5, 108)
    joined = method.join(features)
    changed = features.clone()
    changed[2] += 1
    assert joined.shape == (5, 108) and not torch.allclose(method.join(changed), joined)
    # Leaves have no order.
    torch.testing.assert_close(method.join(features[[0, 3, 1, 2]]), joined)
    episodes, losses = images(size=6), {}
    for weight in (0.0, 0.5, 1.0):
        method.weight = weight
        losses[weight], scores = method.loss(episodes)
    assert scores.shape == (2, 6, 3) and losses[0.5] > losses[0.0]
    torch.testing.assert_close(losses[0.0], cross_entropy(scores, episodes.labels))
    torch.testing.assert_close(losses[1.0] - losses[0.5], losses[0.5] - losses[0.0])


def test_a_leaf_counts_as_far_as_its_gate_is_open():
    """Only the gates' biases are not 0: a cell is gate times the sum of leaves, of which half comes out."""
    method = TreeProtoNet(channels=2)
    for layer in (method.root, method.leaves, method.forget):
        for value in layer.parameters():
            value.data.zero_()
    features = torch.tensor([[[1.0, 2.0]], [[3.0, -1.0]], [[0.5, 0.0]], [[0.0, 0.5]]])
    for bias, gate in ((0.0, 0.5), (-np.log(3), 0.25), (-100.0, 0.0)):
        method.forget.bias.data.fill_(bias)
        expected = features[0] + 0.5 * torch.tanh(gate * torch.tensor([[3.5, -0.5]]))
        torch.testing.assert_close(method.join(features), expected)


def test_nt_xent_by_hand():
    first, second = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    # Each view has a partner at cosine 1 and two others at 0.
    expected = -np.log(np.e**2 / (np.e**2 + 2))
    assert float(nt_xent(first, second, 0.5)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", [SimClr, MoCo])
def test_contrastive_training_ignores_labels_and_fits(kind):
    torch.manual_seed(0)
    options = {} if kind is SimClr else {"queue": 16}
    method = kind(torch.nn.Flatten(), channels=27, width=8, **options)
    base = torch.randn(8, 3, 3, 3)
    batch = torch.cat([base, base + 0.05 * torch.randn_like(base)])
    optimiser = torch.optim.Adam([value for value in method.parameters() if value.requires_grad], 1e-2)
    losses = []
    for _ in range(40):
        loss, _ = method.class_loss(batch, torch.zeros(8, dtype=torch.long))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    # The queue of MoCo is random vectors at first, which are easy to tell apart.
    assert method.views == 2 and losses[-1] < 0.8 * max(losses[:15])


def test_the_slow_network_of_moco_sees_each_image_alone():
    """Statistics of the batch would tell a view which batch its partner is of."""
    method = MoCo(backbone(), channels=8, width=4, queue=6).train()
    batch = torch.randn(8, 3, 18, 18)
    method.class_loss(batch, torch.zeros(4))
    together, alone = method.slow_backbone(batch)[0], method.slow_backbone(batch[:1])[0]
    torch.testing.assert_close(together, alone)
    assert method.emb_func.training and not torch.allclose(method.emb_func(batch)[0], method.emb_func(batch[:4])[0])
    for slow, fast in zip(method.slow_backbone.buffers(), method.emb_func.buffers(), strict=True):
        assert slow.shape == fast.shape
    method.class_loss(batch, torch.zeros(4))
    fast = dict(method.emb_func.named_buffers())
    assert all(torch.equal(value, fast[name]) for name, value in method.slow_backbone.named_buffers())


def test_the_slow_network_and_the_queue_of_moco():
    torch.manual_seed(0)
    method = MoCo(torch.nn.Flatten(), channels=12, width=4, queue=6, momentum=0.9)
    before = method.slow_projection[0].weight.clone()
    with torch.no_grad():
        method.projection[0].weight += 1
    method.class_loss(torch.randn(8, 3, 2, 2), torch.zeros(4))
    expected = 0.9 * before + 0.1 * method.projection[0].weight
    torch.testing.assert_close(method.slow_projection[0].weight, expected.detach())
    assert int(method.place) == 4
    method.class_loss(torch.randn(8, 3, 2, 2), torch.zeros(4))
    assert int(method.place) == 2
    method.eval()
    kept = method.queue.clone()
    method.class_loss(torch.randn(8, 3, 2, 2), torch.zeros(4))
    assert torch.equal(method.queue, kept)


def test_feature_wise_transformation_acts_in_training_only():
    plain, episodes = ProtoNet(backbone()).eval(), images()
    expected = plain.classify(episodes)
    wrapped = FeatureWise(ProtoNet(backbone())).eval()
    torch.testing.assert_close(wrapped.classify(episodes), expected)
    assert wrapped.state_dict().keys() == {f"method.{name}" for name in plain.state_dict()}
    wrapped.train()
    torch.manual_seed(0)
    first, _ = wrapped.loss(episodes)
    torch.manual_seed(1)
    assert not torch.allclose(first, wrapped.loss(episodes)[0])


def test_feature_wise_spreads():
    """On maps of ones and zeros the output's spread is that of scale and shift."""
    norm = torch.nn.BatchNorm2d(400, affine=False)
    wrapped = FeatureWise(ProtoNet(torch.nn.Sequential(norm)), scale=0.3, shift=0.5)
    norm.eval()
    norm.training = True
    torch.manual_seed(0)
    x = torch.randn(50, 400, 2, 2)
    plain = functional.batch_norm(x, None, None, training=True)
    made = wrapped.emb_func(x)
    # All images of a step share the scale and the shift of a channel: both follow from two numbers of it.
    low, high = plain.amin((0, 2, 3)), plain.amax((0, 2, 3))
    scales = (made.amax((0, 2, 3)) - made.amin((0, 2, 3))) / (high - low)
    shifts = made.mean((0, 2, 3))
    torch.testing.assert_close(made, plain * scales[None, :, None, None] + shifts[None, :, None, None])
    assert float(scales.std()) == pytest.approx(0.3, rel=0.15)
    assert float(shifts.std()) == pytest.approx(0.5, rel=0.15)


def test_adversarial_tasks_are_harder():
    episodes = images()
    inner = ProtoNet(backbone()).eval()
    method = AdversarialTasks(inner, steps=3, rate=0.5, filtered=0.0)
    before, after = inner.loss(episodes)[0], method.loss(episodes)[0]
    assert after > before
    still = AdversarialTasks(inner, steps=0, filtered=0.0)
    torch.testing.assert_close(still.loss(episodes)[0], before)
    assert all(value.grad is None for value in inner.parameters())
    torch.manual_seed(0)
    shown_again = replace(episodes, query=episodes.support.flatten(1, 2))
    filtered = AdversarialTasks(inner, steps=0, filtered=1.0).augment(shown_again)
    assert filtered.support.shape == episodes.support.shape and not torch.allclose(filtered.query, shown_again.query)
    torch.testing.assert_close(filtered.support.flatten(1, 2), filtered.query, msg="one filter for all images")
    torch.testing.assert_close(method.classify(episodes), inner.classify(episodes))


def test_each_task_climbs_its_own_loss():
    """A task's images are the same beside other tasks and alone."""
    method, episodes = AdversarialTasks(ProtoNet(backbone()).eval(), steps=2, rate=0.5, filtered=0.0), images(tasks=3)
    together = method.augment(episodes)
    alone = method.augment(Episodes(episodes.support[1:2], episodes.query[1:2], episodes.labels[1:2]))
    torch.testing.assert_close(alone.support[0], together.support[1])
    torch.testing.assert_close(alone.query[0], together.query[1])


PLACES = {
    "conv64f": ["layer1.1", "layer2.1", "layer3.1", "layer4.1"],
    # After the last normalisation of all residual blocks and in their shortcuts, as published for ResNet10.
    "resnet10": ["trunk.4.BN2", *(f"trunk.{block}.{last}" for block in (5, 6, 7) for last in ("BN2", "BNshortcut"))],
    "resnet12": [f"layer{block}.0.{last}" for block in (1, 2, 3, 4) for last in ("bn3", "downsample.1")],
}


@pytest.mark.parametrize(("name", "expected"), PLACES.items())
def test_feature_wise_transformation_is_at_the_end_of_blocks(name, expected):
    network = build_backbone(name)
    FeatureWise(ProtoNet(network))
    assert [key for key, module in network.named_modules() if module._forward_hooks] == expected


def test_explanations_weigh_features_that_explain():
    support, query = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[[2.0, 1.0]]])
    method = ExplanationGuided(ProtoNet())
    # The best score is -((2 - 1)^2 + 1^2): gradient -2 (q - s) = (-2, -2), times the query (-4, -2), over 4.
    torch.testing.assert_close(method.weigh(Episodes(support, query)), torch.tensor([[[0.0, 0.5]]]))
    # Each query by its own largest relevance.
    weights = method.weigh(Episodes(support, torch.cat([query, 10 * query], 1)))
    torch.testing.assert_close(weights[:, :1], torch.tensor([[[0.0, 0.5]]]))
    episodes = replace(images(), labels=torch.zeros(2, 6, dtype=torch.long))
    inner = ProtoNet(backbone()).eval()
    plain = inner.loss(episodes)[0]
    torch.testing.assert_close(ExplanationGuided(inner, guided=0.0).loss(episodes)[0], plain)
    assert not torch.allclose(ExplanationGuided(inner).loss(episodes)[0], plain)


@pytest.mark.parametrize(
    "name", ["ft-matchingnet", "ft-relationnet", "ft-gnn", "ata-relationnet", "lrp-relationnet", "lrp-gnn"]
)
def test_wrappers_are_built_by_name(name):
    from hardlook.networks.few_shot.catalogue import find_method

    kind = find_method(name).load()
    torch.manual_seed(0)
    made = build_backbone("conv64f", channels=8, output=kind.inputs, last_pool=False, pool_third=False)
    size = 40
    shape = made(torch.zeros(1, 3, size, size)).shape
    method = kind.build(
        made, channels=shape[1], classes=7, ways=3, side=shape[-1] if kind.inputs == "maps" else 1
    ).eval()
    episodes = images(tasks=1, size=size)
    assert method.classify(episodes).shape == (1, 6, 3)
    loss, _ = method.train().loss(episodes)
    loss.backward()
    assert method.emb_func is made and made.layer1[0].weight.grad is not None


def test_methods_that_do_not_score_features_are_not_wrapped():
    from hardlook.networks.few_shot.maml import Maml

    with pytest.raises(ValueError, match="Maml does not score features"):
        FeatureWise(Maml(channels=8))
