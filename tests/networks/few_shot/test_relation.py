"""RelationNet: the loss worked by hand, the joined first convolution, and the released code."""

import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import read_golden

from hardlook.errors import OptionError
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.relation import RelationNet


def test_relations_of_pairs_equal_those_of_joined_maps():
    torch.manual_seed(0)
    support, query = torch.randn(2, 3, 2, 4, 12, 12), torch.randn(2, 5, 4, 12, 12)
    method = RelationNet(channels=4, side=12).eval()
    scores = method.classify(Episodes(support, query))
    joined = torch.cat([query[1, 4], support[1, 2].sum(0)])[None]
    layer = method.relation_layer
    torch.testing.assert_close(scores[1, 4, 2], layer.fc(layer.layers(joined).flatten(1))[0, 0])
    assert scores.shape == (2, 5, 3)


def test_the_published_loss_is_the_squared_error_of_the_sigmoid():
    method = RelationNet(channels=2, side=10)
    method.classify = lambda episodes: torch.zeros(1, 1, 4)
    episodes = Episodes(torch.zeros(1, 4, 1, 2, 10, 10), torch.zeros(1, 1, 2, 10, 10), torch.tensor([[2]]))
    assert float(method.loss(episodes)[0]) == 0.25
    method.released = True
    torch.testing.assert_close(method.loss(episodes)[0], torch.log(torch.tensor(4.0)))


def test_small_maps_are_padded_and_too_small_ones_refused():
    method = RelationNet.build(torch.nn.Identity(), channels=4, classes=9, ways=5, side=5)
    assert method.relation_layer.fc[0].in_features == 4
    with pytest.raises(OptionError, match=r"option\.padding=1"):
        RelationNet(channels=4, side=5)


@pytest.mark.parametrize("side", [1, 2, 3, 7])
def test_maps_of_any_size_are_compared(side):
    """ResNet10 has 3 x 3 maps at 84 pixels: a single position is not pooled."""
    method = RelationNet.build(torch.nn.Identity(), channels=4, classes=9, ways=3, side=side)
    episodes = Episodes(torch.rand(2, 3, 1, 4, side, side), torch.rand(2, 5, 4, side, side))
    assert method.classify(episodes).shape == (2, 5, 3)


@pytest.mark.parametrize("case", list_cases("relation"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_relation")
    channels, side = golden.facts["cases"][case]["input"]["shape_of_one"][:2]
    check_episode_case(golden, case, lambda: RelationNet(channels=channels, side=side, released=True))
