"""DSN: distances to subspaces worked by hand, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import plus, read_golden

from hardlook.networks.few_shot.dsn import DSN
from hardlook.networks.few_shot.method import Episodes


def test_the_distance_is_to_the_line_through_two_supports():
    support = torch.tensor([[[[0.0, 0, 2], [5, 0, 2]], [[0, 0, 0], [0, 7, 0]]]])
    query = torch.tensor([[[-9.0, 1, 2], [3, 4, 0]]])
    scores = DSN().score(Episodes(support, query))
    # A query (-9, 1, 2): 1 from the line y=0, z=2, and the root of 85 from the line x=0, z=0. (3, 4, 0): 20 and 9.
    torch.testing.assert_close(scores, -torch.tensor([[[1.0, 85], [20, 9]]]) / 3, rtol=1e-4, atol=1e-4)


def test_it_equals_least_squares():
    torch.manual_seed(0)
    support, query = torch.randn(2, 3, 4, 16, dtype=torch.float64), torch.randn(2, 5, 16, dtype=torch.float64)
    scores = DSN().double().score(Episodes(support, query))
    mean = support[1, 2].mean(0)
    found = torch.linalg.lstsq((support[1, 2] - mean).T, query[1, 3] - mean, driver="gelsd")
    residual = query[1, 3] - mean - (support[1, 2] - mean).T @ found.solution
    torch.testing.assert_close(scores[1, 3, 2], -residual.square().mean(), rtol=1e-4, atol=1e-6)


def test_a_single_support_is_doubled_by_its_mirror_image_or_as_released_by_reversed_colours():
    images = torch.arange(12.0).reshape(1, 1, 1, 3, 2, 2)
    episodes = Episodes(images, images[:, 0])
    assert torch.equal(DSN().embed(episodes).support[:, :, 1], images[:, :, 0].flip(-1))
    assert torch.equal(DSN(released=True).embed(episodes).support[:, :, 1], images[:, :, 0].flip(-3))
    assert DSN().embed(Episodes(images.repeat(1, 1, 2, 1, 1, 1), images[:, 0])).shots == 2


def test_the_channels_of_vectors_are_reversed_too():
    """Not their order in the task: features fed in place of images."""
    support, query = torch.tensor([[[[1.0, 2, 3]], [[9, 8, 7]]]]), torch.zeros(1, 1, 3)
    found = DSN(released=True).embed(Episodes(support, query)).support
    assert found[0].tolist() == [[[1, 2, 3], [3, 2, 1]], [[9, 8, 7], [7, 8, 9]]]


def test_equal_supports_have_finite_gradients():
    support = torch.ones(1, 2, 3, 4, requires_grad=True)
    loss, _ = DSN().loss(Episodes(support, torch.randn(1, 2, 4), torch.tensor([[0, 1]])))
    loss.backward()
    assert support.grad.isfinite().all()


def test_the_overlap_of_equal_subspaces_is_their_dimension_for_each_ordered_pair():
    line = torch.tensor([[0.0, 0, 1], [1, 0, 1]])
    episodes = Episodes(torch.stack([line, line + 4, line - 2])[None], torch.zeros(1, 1, 3), torch.tensor([[0]]))
    losses = [float(DSN(discriminative=weight).loss(episodes)[0].detach()) for weight in (0, 1)]
    assert abs(losses[1] - losses[0] - 6) < 1e-4


@pytest.mark.parametrize("case", list_cases("dsn"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_dsn")
    check_episode_case(golden, case, lambda: DSN(released=True), special={"scale": plus(1)})
