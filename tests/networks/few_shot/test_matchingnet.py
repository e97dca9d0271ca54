"""MatchingNet: the frozen learner of the same rule."""

import numpy as np
import torch

from hardlook.models.few_shot.matching import Matching
from hardlook.models.roles import Episode
from hardlook.networks.few_shot.matchingnet import MatchingNet
from hardlook.networks.few_shot.method import Episodes


def test_scores_like_the_learner_on_frozen_features():
    rng = np.random.default_rng(3)
    support = rng.standard_normal((2, 3, 2, 8)).astype(np.float32)
    query = rng.standard_normal((2, 5, 8)).astype(np.float32)
    scores = MatchingNet(scale=4).score(Episodes(torch.from_numpy(support), torch.from_numpy(query)))
    labels = np.repeat(np.arange(3), 2)
    tasks = [Episode(s.reshape(6, 8), labels, q, ways=3) for s, q in zip(support, query, strict=True)]
    np.testing.assert_allclose(scores.exp(), np.stack(Matching(scale=4).classify(tasks)), rtol=1e-5)


def test_a_support_asked_as_a_query_is_its_own_class():
    torch.manual_seed(0)
    support = torch.randn(3, 4, 1, 16)
    scores = MatchingNet().score(Episodes(support, 2 * support[:, :, 0]))
    assert (scores.argmax(-1) == torch.arange(4)).all()
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(3, 4))
