"""CAN: laws, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases, read_episodes
from goldens import fill, read_golden

from hardlook.networks.few_shot.can import CAN
from hardlook.networks.few_shot.method import Episodes


def test_permuted_classes_permute_the_scores_and_tasks_do_not_mix():
    torch.manual_seed(0)
    support, query = torch.randn(2, 4, 2, 6, 3, 3), torch.randn(2, 5, 6, 3, 3)
    method = CAN(channels=6, side=3).eval()
    scores, order = method.classify(Episodes(support, query)), torch.tensor([3, 1, 0, 2])
    torch.testing.assert_close(method.classify(Episodes(support[:, order], query)), scores[:, :, order])
    torch.testing.assert_close(method.classify(Episodes(support[1:], query[1:])), scores[1:])


def test_attention_is_a_softmax_above_one():
    weights = CAN(side=3).cam_layer.cam.eval()(torch.randn(2, 3, 4, 9, 9))
    torch.testing.assert_close((weights - 1).sum(-1), torch.ones(2, 3, 4))


def test_the_loss_needs_the_training_classes():
    episodes = Episodes(torch.randn(1, 2, 1, 4, 2, 2), torch.randn(1, 2, 4, 2, 2), torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match="training classes"):
        CAN(channels=4, side=2).loss(episodes)


@pytest.mark.parametrize("case", list_cases("can"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_can")
    classes, channels = golden.parameters(case)["cam_layer.classifier.weight"][:2]
    side = golden.facts["cases"][case]["input"]["shape_of_one"][1]

    def make():
        return CAN(channels=channels, classes=classes, side=side)

    check_episode_case(golden, case, make)
    method, episodes = fill(make()).double().train(), read_episodes(golden, case)
    _, query = method.attend(episodes)
    own = query[0, torch.arange(query.shape[1]), episodes.labels[0]]
    scores = method.class_scores(own).mT.unflatten(-1, (side, side))
    golden.check(f"{case}/train_logits", scores)
