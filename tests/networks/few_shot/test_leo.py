"""LEO: the released code with noise of zeros and drawn noise; tasks that do not touch each other."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden

from hardlook.networks.few_shot.leo import Leo
from hardlook.networks.few_shot.method import Episodes


def draw_zeros(shape, **options):
    return torch.zeros(shape, **options)


class Leo31337(Leo):
    """Each inner loop begins with the generator of the goldens."""

    def adapt(self, features):
        rng = np.random.Generator(np.random.PCG64(31337))

        def noise(shape, **options):
            return torch.from_numpy(rng.standard_normal(tuple(shape)).astype(np.float32)).to(**options)

        self.noise = noise
        return super().adapt(features)


@pytest.mark.parametrize("case", list_cases("leo"))
def test_equals_the_released_code(case):
    made = Leo31337 if "pcg" in case else Leo
    golden = read_golden("few_shot", "method_leo")
    # The released inner loop adds its own gradients to those of the features, which are frozen in training.
    check_episode_case(golden, case, lambda: made(channels=64, latent=16, noise=draw_zeros), inputs=False)


def test_a_task_does_not_see_the_others_and_the_backbone_freezes():
    rng = torch.Generator().manual_seed(0)
    episodes = Episodes(torch.randn(3, 4, 2, 6, generator=rng), torch.randn(3, 5, 6, generator=rng))
    torch.manual_seed(0)
    method = Leo(torch.nn.Linear(6, 6), channels=6, latent=4, noise=draw_zeros, classes=7).eval()
    scores = method.classify(episodes)
    one = replace(episodes, support=episodes.support[1:2], query=episodes.query[1:2])
    torch.testing.assert_close(method.classify(one)[0], scores[1])
    method.start_stage("episodes")
    assert not any(value.requires_grad for value in method.emb_func.parameters())
