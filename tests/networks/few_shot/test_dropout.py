"""Where methods drop features in training, seen by dropping all of them."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from hardlook.networks.few_shot.covamnet import CovaMNet
from hardlook.networks.few_shot.cpea import Mlp
from hardlook.networks.few_shot.deepbdc import DeepBDC, DeepBDCSTL
from hardlook.networks.few_shot.feat import SetAttention
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.versa import Versa


def test_attention_drops_shares_and_what_comes_out():
    vectors = torch.randn(2, 4, 6)
    for layer, wanted in (
        (SetAttention(6, attention_dropout=0.0, dropout=1.0), torch.zeros(6)),
        (SetAttention(6, attention_dropout=1.0, dropout=0.0), None),
    ):
        added = layer.fc.bias if wanted is None else wanted
        torch.testing.assert_close(layer.train()(vectors), layer.layer_norm(vectors + added))
        assert not torch.allclose(layer.eval()(vectors), layer.layer_norm(vectors + added))


def test_the_network_of_cpea_drops_after_both_layers():
    layer, x = Mlp(4, 8, 3, dropout=1.0).train(), torch.randn(5, 4)
    assert not layer(x).any()
    torch.testing.assert_close(layer.eval()(x), layer.fc2(functional.gelu(layer.fc1(x))))
    torch.manual_seed(0)
    half = Mlp(4, 2000, 2000, dropout=0.5).train()
    with torch.no_grad():
        half.fc2.weight.copy_(torch.eye(2000))
        half.fc2.bias.zero_()
    assert float((half(x) == 0).float().mean()) == pytest.approx(0.75, abs=0.02), "half of the half that is left"


@pytest.mark.parametrize("kind", [DeepBDC, DeepBDCSTL])
def test_the_classifier_of_bdc_vectors_sees_some_of_them(kind):
    method, vectors = kind(nn.Identity(), channels=6, classes=4, dropout=1.0).train(), torch.randn(5, 6)
    torch.testing.assert_close(method.score_classes(vectors), method.classifier.bias.expand(5, -1))
    torch.testing.assert_close(method.eval().score_classes(vectors), method.classifier(vectors))


def test_versa_and_covamnet_drop_before_their_last_layers():
    zeros = {"noise": lambda shape, **options: torch.zeros(shape, **options)}
    versa, features = Versa(channels=6, width=8, dropout=1.0, **zeros).train(), torch.randn(2, 3, 2, 6)
    scores = versa.score(Episodes(features, torch.randn(2, 4, 6)))
    torch.testing.assert_close(scores, versa.bias_mean(torch.zeros(8)).expand(2, 4, 3))
    covamnet, maps = CovaMNet(side=2, dropout=1.0).train(), torch.randn(1, 3, 1, 5, 2, 2)
    scores = covamnet.score(Episodes(maps, maps[:, :, 0]))
    torch.testing.assert_close(scores, covamnet.state_dict()["convm_layer.conv1dLayer.2.bias"].expand(1, 3, 3))
