"""FEAT: laws of its attention and regulariser, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import fill, read_golden

from hardlook.networks.few_shot.feat import FEAT
from hardlook.networks.few_shot.method import Episodes, cross_entropy
from hardlook.networks.few_shot.protonet import ProtoNet

DRY = {"attention_dropout": 0, "dropout": 0}


def make_episodes(tasks=2, ways=3, shots=2, queries=6, channels=8):
    torch.manual_seed(0)
    centres = 6 * torch.randn(tasks, ways, 1, channels)
    labels = torch.stack([torch.randperm(queries) % ways for _ in range(tasks)])
    query = centres[torch.arange(tasks)[:, None], labels, 0] + torch.randn(tasks, queries, channels)
    return Episodes(centres + torch.randn(tasks, ways, shots, channels), query, labels)


def test_permuted_classes_permute_the_scores():
    episodes, method = make_episodes(), FEAT(channels=8).eval()
    order = torch.tensor([2, 0, 1])
    moved = method.classify(Episodes(episodes.support[:, order], episodes.query))
    torch.testing.assert_close(moved, method.classify(episodes)[:, :, order])


def test_the_regulariser_does_not_depend_on_the_order_of_queries_unless_released():
    episodes = make_episodes()
    order = episodes.labels[0].argsort(descending=True)
    moved = Episodes(episodes.support, episodes.query[:, order], episodes.labels[:, order])
    for released in (False, True):
        method = FEAT(channels=8, temperature=1, temperature2=1, released=released, **DRY)
        first, second = (method.regulariser(given, given.labels) for given in (episodes, moved))
        torch.testing.assert_close(first, second)
        assert (first > 1) == released, "well-separated classes: only wrong targets cost much"


@pytest.mark.parametrize("released", [False, True])
def test_the_balance_weighs_the_regulariser_but_as_released_the_main_loss(released):
    episodes, losses = make_episodes(), {}
    for balance in (0.0, 0.25, 1.0):
        torch.manual_seed(0)
        method = FEAT(channels=8, temperature=1, temperature2=1, balance=balance, released=released, **DRY)
        losses[balance], scores = method.loss(episodes)
    main, extra = cross_entropy(scores, episodes.labels), method.regulariser(episodes, episodes.labels)
    fixed, weighed = (extra, main) if released else (main, extra)
    for balance, loss in losses.items():
        torch.testing.assert_close(loss, fixed + balance * weighed)


def test_images_see_those_of_their_own_class_alone():
    method = FEAT(channels=8).slf_attn.eval()
    images = torch.randn(1, 4, 8)
    labels = torch.tensor([[0, 1, 0, 1]])
    seen = method(images, labels[:, :, None] == labels[:, None])
    torch.testing.assert_close(seen[:, ::2], method(images[:, ::2]))


def test_a_method_without_training_classes_says_so():
    with pytest.raises(ValueError, match="classes=N"):
        FEAT(channels=8).class_loss(torch.zeros(2, 8), torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize("case", list_cases("feat", choose=lambda case: not case.startswith("pretrain")))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_feat")
    channels = golden.facts["cases"][case]["input"]["shape_of_one"][0]
    temperatures = (64, 32) if channels == 640 else (1, 1)
    options = {"channels": channels, "temperature": temperatures[0], "temperature2": temperatures[1], **DRY}
    check_episode_case(golden, case, lambda: FEAT(balance=0.5, released=True, **options))


def test_the_first_stage_equals_the_released_code():
    golden = read_golden("few_shot", "method_feat")
    method = fill(FEAT(channels=64, classes=64)).double()
    own = {name: tuple(value.shape) for name, value in method.state_dict().items() if "slf_attn" not in name}
    assert own == golden.parameters("pretrain_d64")
    support, query = golden.episode("d64/1shot")
    images = torch.cat([support[0], query[0].unflatten(0, (5, 4))], 1).flatten(0, 1)
    loss, _ = method.class_loss(images, torch.arange(25) * 7 % 64)
    golden.check_value("pretrain_d64", "loss", loss.detach())
    loss.backward()
    golden.check_gradients("pretrain_d64", method)
    golden.check("pretrain_d64/val_logits", ProtoNet().classify(Episodes(support, query))[0])
