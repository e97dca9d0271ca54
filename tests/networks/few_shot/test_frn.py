"""FRN: the frozen learner of the same rule, the auxiliary loss, and the released code."""

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases
from goldens import fill, plus, read_golden

from hardlook.models.few_shot.frn import FRN as FrozenFRN
from hardlook.models.roles import Episode
from hardlook.networks.few_shot.frn import FRN
from hardlook.networks.few_shot.method import Episodes

STARTS_AT_ONE = {"frn_layer.scale": plus(1)}


@pytest.mark.parametrize("channels", [6, 40])
def test_before_training_it_scores_like_the_learner_on_frozen_features(channels):
    rng = np.random.default_rng(3)
    support = rng.standard_normal((2, 3, 2, channels, 3, 3)).astype(np.float32)
    query = rng.standard_normal((2, 5, channels, 3, 3)).astype(np.float32)
    method = FRN(channels=channels, side=3)
    with torch.no_grad():
        scores = method.score(Episodes(torch.from_numpy(support), torch.from_numpy(query)))
    labels = np.repeat(np.arange(3), 2)
    tasks = [Episode(s.reshape(6, channels, 3, 3), labels, q, ways=3) for s, q in zip(support, query, strict=True)]
    expected = torch.from_numpy(np.stack(FrozenFRN().classify(tasks))).log_softmax(-1)
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)


def test_training_and_testing_scale_alike_unless_released():
    torch.manual_seed(0)
    episodes = Episodes(torch.randn(1, 3, 1, 8, 2, 2), torch.randn(1, 4, 8, 2, 2))
    for released in (False, True):
        method = FRN(channels=8, side=2, released=released)
        trained, tested = method.train().classify(episodes), method.eval().classify(episodes)
        assert torch.equal(trained, tested) != released


def test_the_auxiliary_loss_sums_mean_squared_cosines_over_pairs_of_classes():
    support = torch.tensor([[[[3.0, 0.0], [0.0, 1.0]], [[5.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [0.0, 7.0]]]])
    # cosines squared: classes 0, 1: (1 + 0) + (.5 + .5); 0, 2: (0 + 1) x 2; 1, 2: 0 + .5, twice
    torch.testing.assert_close(FRN(channels=2).overlap(support), torch.tensor((2.0 + 2.0 + 1.0) / 4))
    assert FRN(channels=2, released=True).overlap(support) < 0.2


def test_the_matrix_of_a_training_class_rebuilds_its_own_maps():
    torch.manual_seed(0)
    method = FRN(channels=16, classes=4, side=2)
    maps = 4 * method.frn_layer.cat_mat.detach().mT.unflatten(-1, (2, 2))
    _, scores = method.class_loss(maps, torch.arange(4))
    assert (scores.argmax(1) == torch.arange(4)).all()
    assert method.classify(Episodes(maps[None, :, None], maps[None])).argmax(-1).tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("case", list_cases("frn", choose=lambda case: not case.startswith("pretrain")))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_frn")
    channels = golden.facts["cases"][case]["input"]["shape_of_one"][0]
    options = {"special": STARTS_AT_ONE, "float32": channels <= 64}
    check_episode_case(golden, case, lambda: FRN(channels=channels, released=True), **options)


def test_the_first_stage_equals_the_released_code():
    golden = read_golden("few_shot", "method_frn")
    method = FRN(channels=640, classes=6, released=True)
    golden.check_names(method, "pretrain_6cats")
    method = fill(method, special=STARTS_AT_ONE).double().train()
    support, query = golden.episode("map640x5x5/1shot")
    images = torch.cat([support[0], query[0].unflatten(0, (5, 4))], 1).flatten(0, 1)[:6]
    loss, scores = method.class_loss(images, torch.arange(6))
    golden.check("pretrain_6cats/train_logprob", scores)
    golden.check_value("pretrain_6cats", "loss", loss.detach())
    loss.backward()
    golden.check_gradients("pretrain_6cats", method)
    assert method.frn_layer.r.grad is None
    golden.check("pretrain_6cats/val_logprob", method.train().classify(Episodes(support, query))[0])
