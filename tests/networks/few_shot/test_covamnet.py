"""CovaMNet: the frozen learner of the same rule, the divisor, and the released code."""

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden

from hardlook.models.few_shot.covamnet import CovaMNet as FrozenCovaMNet
from hardlook.models.roles import Episode
from hardlook.networks.few_shot.covamnet import CovaMNet
from hardlook.networks.few_shot.method import Episodes


def test_with_equal_weights_it_scores_like_the_learner_on_frozen_features():
    rng = np.random.default_rng(3)
    support = rng.standard_normal((2, 3, 2, 8, 3, 3)).astype(np.float32)
    query = rng.standard_normal((2, 5, 8, 3, 3)).astype(np.float32)
    method = CovaMNet(side=3).eval()
    layer = method.convm_layer.conv1dLayer[2]
    torch.nn.init.constant_(layer.weight, 1 / 9)
    torch.nn.init.zeros_(layer.bias)
    with torch.no_grad():
        scores = method.score(Episodes(torch.from_numpy(support), torch.from_numpy(query)))
    labels = np.repeat(np.arange(3), 2)
    tasks = [Episode(s.reshape(6, 8, 3, 3), labels, q, ways=3) for s, q in zip(support, query, strict=True)]
    np.testing.assert_allclose(scores, np.stack(FrozenCovaMNet(query="centred").classify(tasks)), rtol=1e-4)


def test_the_released_divisor_does_not_grow_with_the_shots():
    torch.manual_seed(0)
    support, query = torch.randn(1, 2, 3, 4, 2, 2), torch.randn(1, 3, 4, 2, 2)
    default, released = (CovaMNet(side=2, released=flag).eval() for flag in (False, True))
    released.load_state_dict(default.state_dict())
    bias = default.convm_layer.conv1dLayer[2].bias
    scores = [method.score(Episodes(support, query)) - bias for method in (default, released)]
    torch.testing.assert_close(scores[1], scores[0] * 11 / 3)


@pytest.mark.parametrize("case", list_cases("covamnet"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_covamnet")
    side = golden.facts["cases"][case]["input"]["shape_of_one"][1]
    check_episode_case(golden, case, lambda: CovaMNet(side=side, dropout=0, released=True))
