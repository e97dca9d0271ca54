"""CPEA: laws, and the released code."""

import pytest
import torch
from few_shot_goldens import CLASSES, list_cases
from goldens import fill, read_golden

from hardlook.networks.few_shot.cpea import CPEA
from hardlook.networks.few_shot.method import Episodes


def test_permuted_classes_permute_the_scores_and_tasks_do_not_mix():
    torch.manual_seed(0)
    support, query = torch.randn(2, 3, 2, 5, 8), torch.randn(2, 4, 5, 8)
    method = CPEA(channels=8, patches=4).eval()
    scores, order = method.classify(Episodes(support, query)), torch.tensor([2, 0, 1])
    torch.testing.assert_close(method.classify(Episodes(support[:, order], query)), scores[:, :, order])
    torch.testing.assert_close(method.classify(Episodes(support[1:], query[1:])), scores[1:])


def test_maps_are_tokens_after_their_mean():
    maps = torch.randn(1, 2, 1, 8, 2, 2)
    features = CPEA(channels=8, patches=4).embed(Episodes(maps, maps[:, :, 0]))
    torch.testing.assert_close(features.support[0, 1, 0, 0], maps[0, 1, 0].mean((1, 2)))
    torch.testing.assert_close(features.query[0, 1, 3], maps[0, 1, 0, :, 1, 0])


@pytest.mark.parametrize("case", list_cases("cpea"))
def test_equals_the_released_code(case):
    """The rows of the released scores are not class-major: query slow, class fast."""
    golden = read_golden("few_shot", "method_cpea")
    support, query = golden.episode(case)
    ways = support.shape[1]
    query = query.unflatten(1, (ways, -1)).transpose(1, 2).flatten(1, 2)
    labels = torch.arange(ways).repeat(query.shape[1] // ways)[None]
    method = CPEA(channels=query.shape[3], patches=query.shape[2] - 1, dropout=0)
    golden.check_names(method, case)
    fill(method).double()
    for features in (support, query):
        features.requires_grad_()
    episodes = Episodes(support, query, labels, torch.tensor([CLASSES[:ways]]))
    loss, scores = method.train().loss(episodes)
    golden.check(f"{case}/logits", scores[0])
    golden.check(f"{case}/train_logits", scores[0])
    golden.check_value(case, "loss", loss.detach())
    loss.backward()
    # The gradient of the features is stored in the order of the episode that was fed: class-major.
    asked = query.grad[0].unflatten(0, (-1, ways)).transpose(0, 1)
    joined = torch.cat([support.grad[0], asked], 1).flatten(0, 1)
    golden.check(f"{case}/grad_input", joined)
    golden.check_value(case, "grad_input_norm", joined.norm())
    golden.check_gradients(case, method)
    with torch.no_grad():
        small = Episodes(support.float(), query.float())
        golden.check(f"{case}/logits", method.float().eval().classify(small)[0], tolerance=1e-4, spread=0.02)
