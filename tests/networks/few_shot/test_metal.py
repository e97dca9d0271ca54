"""MeTAL: the released code; tasks that do not touch each other; queries that do."""

from dataclasses import replace

import pytest
import torch
from few_shot_goldens import check_images_case, list_cases
from goldens import read_golden

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.metal import Metal
from hardlook.networks.few_shot.method import Episodes


@pytest.mark.parametrize("case", list_cases("metal"))
def test_equals_the_released_code(case):
    parameters = read_golden("few_shot", "method_metal").parameters(case)
    ways, channels = parameters["classifier.layers.0.weight"]
    # A loss network for each inner step; five in training.
    most = len({name.split(".")[2] for name in parameters if name.startswith("meta_loss.layer_dict.")})

    def make():
        backbone = build_backbone("conv64f")
        return Metal(backbone, channels=channels, ways=ways, steps=min(5, most), test_steps=most, released=True)

    check_images_case("metal", case, make, {"logits": {}})


def test_tasks_are_independent_and_queries_are_not():
    rng = torch.Generator().manual_seed(0)
    episodes = Episodes(torch.randn(3, 4, 2, 6, generator=rng), torch.randn(3, 5, 6, generator=rng))
    torch.manual_seed(0)
    method = Metal(channels=6, ways=4).eval()
    for value in method.parameters():
        torch.nn.init.normal_(value)
    scores = method.classify(episodes)
    one = replace(episodes, support=episodes.support[1:2], query=episodes.query[1:2])
    torch.testing.assert_close(method.classify(one)[0], scores[1])
    fewer = method.classify(replace(one, query=one.query[:, :3]))
    method.released = True
    assert not torch.allclose(method.classify(one)[0], scores[1], rtol=1e-4)
    method.released = False
    assert method.transductive and not torch.allclose(fewer[0], scores[1, :3], rtol=1e-4)
