"""DeepBDC: both rules worked by hand, and the released code."""

import math

import numpy as np
import pytest
import torch
from few_shot_goldens import check_episode_case, list_cases, read_episodes
from goldens import fill, read_golden, standard_normal
from sklearn.linear_model import LogisticRegression

from hardlook.models.few_shot.logistic import Logistic
from hardlook.models.roles import Episode
from hardlook.models.unit_vectors import unit_vectors
from hardlook.networks.backbones.bdc import BdcPooling
from hardlook.networks.few_shot.deepbdc import DeepBDC, DeepBDCSTL
from hardlook.networks.few_shot.method import Episodes

TEMPERATURE = {
    "emb_func.bdc_pool.temperature": lambda name, shape: math.log(1 / 50) + 0.1 * standard_normal(name, shape)
}


class Pooling(torch.nn.Module):
    """What remains of a BDC backbone where the goldens feed maps."""

    def __init__(self, channels=64, r=32):
        super().__init__()
        self.bdc_pool = BdcPooling(channels, r, 25)

    def forward(self, maps):
        return self.bdc_pool(maps)


def test_one_shot_has_the_inner_product_and_more_the_distance():
    support, query = torch.tensor([[[[1.0, 2.0]], [[3.0, 0.0]]]]), torch.tensor([[[2.0, 1.0]]])
    assert DeepBDC().score(Episodes(support, query)).tolist() == [[[4.0, 6.0]]]
    assert DeepBDC().score(Episodes(support.repeat(1, 1, 2, 1), query)).tolist() == [[[-2.0, -2.0]]]


def test_a_backbone_of_maps_is_pooled_and_a_bdc_backbone_is_left_as_it_is():
    method = DeepBDC.build(torch.nn.Conv2d(3, 6, 3), channels=6, classes=9, ways=5, side=4, r=4)
    loss, scores = method.class_loss(torch.randn(5, 3, 6, 6), torch.arange(5))
    assert scores.shape == (5, 9) and loss.isfinite()
    pooled = Pooling()
    pooled.channels = 528
    assert DeepBDC.build(pooled, channels=7, classes=9, ways=5, side=4).emb_func is pooled


def test_a_distilled_generation_learns_from_the_one_before_it():
    torch.manual_seed(0)
    method = DeepBDCSTL(Pooling(), channels=528, classes=4, dropout=0)
    maps, labels = torch.randn(3, 64, 5, 5), torch.arange(3)
    method.eval()
    alone, _ = method.class_loss(maps, labels)
    method.learn_from_itself()
    torch.testing.assert_close(method.class_loss(maps, labels)[0], alone / 2, msg="its own teacher costs nothing more")


@pytest.mark.parametrize("case", list_cases("deepbdc", choose=lambda case: case.startswith("map")))
def test_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_deepbdc")
    r, channels = golden.parameters(case)["emb_func.bdc_pool.conv_dr_block.0.weight"][:2]
    check_episode_case(golden, case, lambda: DeepBDC(Pooling(channels, r)), special=TEMPERATURE)
    if f"{case}/bdc_vectors_first3" in golden.arrays:
        method = fill(DeepBDC(Pooling(channels, r)), special=TEMPERATURE).double().eval()
        features = method.embed(read_episodes(golden, case))
        golden.check(f"{case}/bdc_vectors_first3", torch.cat([features.support[0, 0], features.query[0, :2]]))


@pytest.mark.parametrize("case", list_cases("deepbdc", choose=lambda case: case.startswith("stl")))
def test_the_simple_form_equals_the_released_code(case):
    golden = read_golden("few_shot", "method_deepbdc")
    episodes = read_episodes(golden, case.replace("stl", "map64x5x5_r32"))
    method = DeepBDCSTL(Pooling(), channels=528, classes=64, dropout=0)
    golden.check_names(method, case)
    fill(method, special=TEMPERATURE).double().eval()
    with torch.no_grad():
        features = method.embed(episodes)
    support, query = (given[0].flatten(0, -2).numpy() for given in (features.support, features.query))
    labels, c = episodes.support_labels().numpy(), method.penalty(episodes.shots)
    assert c == golden.facts["cases"][case]["C"]
    # The released regression is scikit-learn's, which stops at a gradient of 1e-4, a little before its minimum.
    released = LogisticRegression(C=c, max_iter=1000).fit(unit_vectors(support), labels)
    golden.check(f"{case}/decision", torch.from_numpy(released.decision_function(unit_vectors(query))), tolerance=1e-5)
    found = Logistic(c=c).classify([Episode(support.astype(np.float32), labels, query.astype(np.float32), ways=5)])[0]
    np.testing.assert_allclose(found, golden.arrays[f"{case}/decision"], atol=1e-3)
    images = torch.cat([episodes.support[0], episodes.query[0].unflatten(0, (5, 4))], 1).flatten(0, 1)
    loss, _ = method.train().class_loss(images, torch.arange(len(images)) * 7 % 64)
    golden.check_value(case, "pretrain_loss", loss.detach())
    loss.backward()
    golden.check_gradients(case, method)
