"""ProtoNet: the worked example of the specification, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden

from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.protonet import ProtoNet


def test_the_worked_example():
    episodes = Episodes(torch.tensor([[[[0.0]], [[4.0]]]]), torch.tensor([[[1.0]]]))
    scores = ProtoNet().classify(episodes)
    assert scores.tolist() == [[[-1.0, -9.0]]]
    assert round(float(scores.softmax(-1)[0, 0, 0]), 6) == 0.999665


@pytest.mark.parametrize("case", list_cases("proto"))
def test_equals_the_released_code(case):
    check_episode_case(read_golden("few_shot", "method_proto"), case, ProtoNet)
