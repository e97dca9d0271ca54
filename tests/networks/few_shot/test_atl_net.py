"""ATL-Net: laws of its attention, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden

from hardlook.networks.few_shot.atl_net import ATLNet
from hardlook.networks.few_shot.method import Episodes


def test_permuted_classes_permute_the_scores_and_tasks_do_not_mix():
    torch.manual_seed(0)
    support, query = torch.randn(2, 4, 2, 6, 3, 3), torch.randn(2, 5, 6, 3, 3)
    method = ATLNet(channels=6).eval()
    scores, order = method.classify(Episodes(support, query)), torch.tensor([3, 1, 0, 2])
    torch.testing.assert_close(method.classify(Episodes(support[:, order], query)), scores[:, :, order])
    torch.testing.assert_close(method.classify(Episodes(support[1:], query[1:])), scores[1:])


def test_a_descriptor_heeds_what_lies_above_its_threshold():
    attention = ATLNet(channels=2, steepness=1000, lowest=0.5, interval=0.0).atlLayer.attenLayer
    shares = attention(torch.tensor([[1.0, 0]]), torch.tensor([[2.0, 0.1], [3, -1], [0.1, 1], [-1, 0]]))
    torch.testing.assert_close(shares, torch.tensor([[0.5, 0.5, 0, 0]]))


@pytest.mark.parametrize("case", list_cases("atl_net"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_atl_net")
    channels = golden.facts["cases"][case]["input"]["shape_of_one"][0]
    check_episode_case(golden, case, lambda: ATLNet(channels=channels))
