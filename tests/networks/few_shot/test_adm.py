"""ADM: divergences of Gaussians, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden
from torch.distributions import MultivariateNormal, kl_divergence

from hardlook.networks.few_shot.adm import ADM, ADMKL, divergences, fit_gaussians
from hardlook.networks.few_shot.method import Episodes


def test_divergences_equal_those_of_torch():
    torch.manual_seed(0)
    query, classes = torch.randn(2, 3, 9, 4, dtype=torch.float64), torch.randn(2, 5, 7, 4, dtype=torch.float64)
    found = divergences(query, classes)
    asked, known = (MultivariateNormal(*fit_gaussians(given)) for given in (query[1, 2], classes[1, 4]))
    torch.testing.assert_close(found[1, 2, 4], kl_divergence(asked, known))
    torch.testing.assert_close(divergences(classes, classes)[0].diagonal(), torch.zeros(5, dtype=torch.float64))


def test_contrast_adds_the_divergence_to_the_other_classes_together():
    torch.manual_seed(0)
    support, query = torch.randn(1, 3, 2, 4, 2, 2), torch.randn(1, 5, 4, 2, 2)
    plain, contrastive = (ADMKL(contrastive=flag).score(Episodes(support, query)) for flag in (False, True))
    others = Episodes(torch.cat([support[:, :1], support[:, 2:]], 2).flatten(1, 2)[:, None], query)
    torch.testing.assert_close((contrastive - plain)[..., 1:2], -ADMKL(contrastive=False).score(others))


def test_other_ways_than_those_it_was_built_for_are_refused():
    with pytest.raises(ValueError, match="pass ways=3"):
        ADM(ways=5).classify(Episodes(torch.randn(1, 3, 1, 4, 2, 2), torch.randn(1, 2, 4, 2, 2)))


@pytest.mark.parametrize("case", list_cases("adm"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_adm")
    given = golden.facts["cases"][case]["input"]

    def make():
        return ADM(ways=given["way"]) if case.startswith("adm") else ADMKL(contrastive="cms" in case)

    # Covariances of 64 channels from 25 descriptors: float32 cannot hold these by nature.
    check_episode_case(golden, case, make, float32=given["shot"] > 1)
