"""Versa: the released code with noise of zeros and drawn noise, and the spread of its samples."""

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases, read_episodes
from goldens import read_golden

from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.versa import Versa


def draw_zeros(shape, **options):
    return torch.zeros(shape, **options)


def draw_pcg():
    rng = np.random.Generator(np.random.PCG64(31337))
    return lambda shape, **options: torch.from_numpy(rng.standard_normal(shape).astype(np.float32)).to(**options)


@pytest.mark.parametrize("case", list_cases("versa"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_versa")

    def make():
        noise = draw_zeros if "zero" in case else draw_pcg()
        width, channels = golden.parameters(case)["h.0.weight"]
        method = Versa(channels=channels, width=width, dropout=0.0, noise=noise)
        if "pcg" in case:
            # Each call of the golden begins with the same generator.
            scores = method.sample_scores

            def sample(features):
                method.noise = draw_pcg()
                return scores(features)

            method.sample_scores = sample
        return method

    # The released code takes the logarithm of the sample count in float32.
    check_episode_case(golden, case, make, tolerance=1e-7)
    assert len(read_episodes(golden, case)) == 1


def test_more_samples_come_closer_to_each_other():
    rng = torch.Generator().manual_seed(0)
    episodes = Episodes(torch.randn(1, 3, 2, 8, generator=rng), torch.randn(1, 4, 8, generator=rng))
    torch.manual_seed(0)
    method = Versa(channels=8, width=8).eval()
    spreads = []
    for samples in (2, 200):
        method.samples = samples
        spreads.append(torch.stack([method.classify(episodes) for _ in range(8)]).std(0).mean().item())
    assert spreads[1] < spreads[0] / 2
