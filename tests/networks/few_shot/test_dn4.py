"""DN4: the frozen learner of the same rule, and the released code."""

import re

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden

from hardlook.models.few_shot.dn4 import DN4 as FrozenDN4
from hardlook.models.roles import Episode
from hardlook.networks.few_shot.dn4 import DN4
from hardlook.networks.few_shot.method import Episodes


def test_scores_like_the_learner_on_frozen_features():
    rng = np.random.default_rng(3)
    support = rng.standard_normal((2, 3, 2, 8, 3, 4)).astype(np.float32)
    query = rng.standard_normal((2, 5, 8, 3, 4)).astype(np.float32)
    scores = DN4().score(Episodes(torch.from_numpy(support), torch.from_numpy(query)))
    labels = np.repeat(np.arange(3), 2)
    tasks = [Episode(s.reshape(6, 8, 3, 4), labels, q, ways=3) for s, q in zip(support, query, strict=True)]
    np.testing.assert_allclose(scores, np.stack(FrozenDN4().classify(tasks)), rtol=1e-5)


@pytest.mark.parametrize("case", list_cases("dn4"))
def test_equals_the_released_code(case):
    named = re.search(r"_k(\d+)", case)  # 3 where the name of the case says nothing else
    neighbours = int(named[1]) if named else 3
    check_episode_case(read_golden("few_shot", "method_dn4"), case, lambda: DN4(neighbours=neighbours))
