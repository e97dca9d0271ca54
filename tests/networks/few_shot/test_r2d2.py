"""R2D2: the worked example of the specification (its docstring), ridge regression, and the released code."""

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import plus, read_golden
from sklearn.linear_model import Ridge

from hardlook.networks.few_shot.meta_baseline import MetaBaseline
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.r2d2 import R2D2


@pytest.mark.parametrize("case", list_cases("r2d2"))
def test_equals_the_released_code(case):
    special = {"classifier.alpha": plus(1), "classifier.gamma": plus(50)}
    check_episode_case(read_golden("few_shot", "method_r2d2"), case, R2D2, special=special)


def test_whole_numbers_are_taken_for_learned_values():
    assert R2D2(regularisation=50).classifier.gamma.dtype == torch.float32
    assert MetaBaseline(temperature=10).temp.dtype == torch.float32


def test_is_ridge_regression_without_intercept():
    rng = torch.Generator().manual_seed(0)
    support = torch.randn(2, 3, 4, 6, generator=rng, dtype=torch.float64)
    query = torch.randn(2, 5, 6, generator=rng, dtype=torch.float64)
    scores = R2D2(regularisation=2.5).double().classify(Episodes(support, query)).detach().numpy()
    targets = np.eye(3).repeat(4, 0)
    for task in range(2):
        ridge = Ridge(2.5, fit_intercept=False).fit(support[task].flatten(0, 1).numpy(), targets)
        np.testing.assert_allclose(scores[task], ridge.predict(query[task].numpy()), rtol=1e-9)
