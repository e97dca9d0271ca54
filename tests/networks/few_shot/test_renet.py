"""RENet: laws, and the released code."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases, read_episodes
from goldens import fill, read_golden

from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.renet import Neighbourhoods, RENet


def test_permuted_classes_permute_the_scores_and_tasks_do_not_mix():
    torch.manual_seed(0)
    support, query = torch.randn(2, 3, 2, 6, 3, 4), torch.randn(2, 4, 6, 3, 4)
    method = RENet(channels=6).eval()
    with torch.no_grad():
        scores, order = method.classify(Episodes(support, query)), torch.tensor([2, 0, 1])
        moved, alone = (
            method.classify(Episodes(*given)) for given in ((support[:, order], query), (support[1:], query[1:]))
        )
    torch.testing.assert_close(moved, scores[:, :, order])
    torch.testing.assert_close(alone, scores[1:])


def test_neighbourhoods_multiply_each_position_with_those_around_it():
    maps = torch.rand(1, 3, 4, 4)
    unit = maps / maps.norm(dim=1, keepdim=True)
    found = Neighbourhoods()(maps)
    torch.testing.assert_close(found[0, :, 5, 2, 2], unit[0, :, 1, 1] ** 2)
    torch.testing.assert_close(found[0, :, 5, 4, 3], unit[0, :, 1, 1] * unit[0, :, 3, 2])
    assert found[0, :, 0, 1, 2].tolist() == [0, 0, 0], "outside of the map"


def test_without_a_batch_the_supports_are_classified():
    torch.manual_seed(0)
    support, query = torch.randn(1, 2, 1, 4, 3, 3), torch.randn(1, 2, 4, 3, 3)
    episodes = Episodes(support, query, torch.tensor([[0, 1]]), torch.tensor([[7, 2]]))
    method = RENet(channels=4, classes=9).eval()
    given, _ = method.loss(episodes, (support[0, :, 0], torch.tensor([7, 2])))
    torch.testing.assert_close(method.loss(episodes)[0], given)


def ordinary_batch(golden, case, dtype=torch.float64):
    given = golden.facts["cases"][case]["input"]
    seed = given["seed"] - given["shot"] + 77
    return golden.images(seed, (8, *given["shape_of_one"]), dtype), 1 + 4 * torch.arange(8)


@pytest.mark.parametrize("case", list_cases("renet", choose=lambda case: "640" in case or "5shot" in case))
def test_scores_and_loss_equal_the_released_code(case):
    """A score of each class, as a convolution over four axes in float64 takes long, and the loss in float32."""
    golden = read_golden("few_shot", "method_renet")
    episodes = read_episodes(golden, case)
    method = RENet(channels=episodes.query.shape[2], classes=golden.parameters(case)["fc.bias"][0])
    golden.check_names(method, case)
    fill(method).double().eval()
    with torch.no_grad():
        scores = method.classify(replace(episodes, query=episodes.query[:, ::5]))
        np.testing.assert_allclose(scores[0], golden.arrays[f"{case}/logits_f64"][::5], rtol=1e-8)
        episodes = read_episodes(golden, case, torch.float32)
        loss, scores = method.float().train().loss(episodes, ordinary_batch(golden, case, torch.float32))
    golden.check(f"{case}/train_logits", scores[0], tolerance=1e-4, spread=0.02)
    golden.check_value(case, "loss", loss, tolerance=1e-5)


@pytest.mark.parametrize("case", list_cases("renet", choose=lambda case: case == "map64x5x5/1shot"))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_renet")

    class WithBatch(RENet):
        def loss(self, episodes):
            return super().loss(episodes, ordinary_batch(golden, case))

    classes, channels = golden.parameters(case)["fc.weight"]
    check_episode_case(golden, case, lambda: WithBatch(channels=channels, classes=classes), float32=False)
    if f"{case}/encode_first3" not in golden.arrays:
        return
    features = fill(RENet()).double().eval().embed(read_episodes(golden, case))
    golden.check(f"{case}/encode_first3", torch.cat([features.support[0, 0], features.query[0, :2]]))
