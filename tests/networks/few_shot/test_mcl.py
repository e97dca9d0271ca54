"""MCL: Katz centrality of the whole graph, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import plus, read_golden

from hardlook.networks.few_shot.mcl import MCL, R2D2MCL, katz_centrality
from hardlook.networks.few_shot.method import Episodes


def test_centralities_equal_those_of_the_whole_graph():
    torch.manual_seed(0)
    found = torch.randn(4, 6, dtype=torch.float64)
    query, support = katz_centrality(found, 3, 2, 0.7)
    walk = torch.zeros(10, 10, dtype=torch.float64)
    walk[4:, :4] = (3 * found).softmax(1).T
    walk[:4, 4:] = (2 * found).softmax(0)
    expected = (torch.linalg.inv(torch.eye(10) - 0.7 * walk) - torch.eye(10)) @ torch.ones(10, dtype=torch.float64)
    torch.testing.assert_close(torch.cat([query, support]), expected)


def test_scores_are_probabilities_and_a_support_finds_its_class():
    torch.manual_seed(0)
    support = torch.randn(2, 4, 1, 16, 3, 3)
    scores = MCL().score(Episodes(support, support[:, :, 0]))
    torch.testing.assert_close(scores.sum(-1), torch.ones(2, 4))
    assert (scores.argmax(-1) == torch.arange(4)).all()


@pytest.mark.parametrize("case", list_cases("mcl", choose=lambda case: not case.startswith("r2d2")))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_mcl")
    check_episode_case(golden, case, lambda: MCL(katz=0.999 if "map640" in case else 0.5))


@pytest.mark.parametrize("case", list_cases("mcl", choose=lambda case: case.startswith("r2d2")))
def test_with_r2d2_it_equals_the_released_code(case):
    special = {"classifier.alpha": plus(1), "classifier.gamma": plus(50)}
    check_episode_case(read_golden("few_shot", "method_mcl"), case, R2D2MCL, special=special)


def test_a_position_that_no_walk_visits_does_not_count_with_r2d2():
    torch.manual_seed(0)
    support, query = torch.randn(1, 2, 1, 8, 1, 2), torch.randn(1, 1, 8, 1, 2)
    support[0, :, 0, :, 0] = query[0, 0, :, 0, :1]
    query[0, 0, :, 0, 1] = -query[0, 0, :, 0, 0]
    method = R2D2MCL(gamma=500, gamma2=500)
    visits, _ = method.visits(Episodes(support, query))
    assert visits[0, 0, 1] < 1e-6 * visits[0, 0, 0]
