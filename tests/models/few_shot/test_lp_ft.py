"""LP-FT against the loop written with torch, on a small encoder of its own and on the real one."""

from collections.abc import Sequence

import numpy as np
import pytest

from hardlook.errors import ModelError, OptionError
from hardlook.models import registry
from hardlook.models.conformance import check_named
from hardlook.models.few_shot.lp_ft import LpFt
from hardlook.models.few_shot.trained_heads import LinearHead
from hardlook.models.registry import ModelCard, RegistryEntry
from hardlook.models.roles import Episode, Features
from hardlook.randomness import generator

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread():
    """As in a worker; on many threads steps this small mostly wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class TinyEncoder:
    """One layer and tanh on the mean colours of an image's quarters."""

    device, dimension = "cpu", 6

    def __init__(self) -> None:
        self.layer = torch.nn.Linear(12, 6)
        drawn = generator(0, "tiny encoder").standard_normal((6, 13))
        with torch.no_grad():
            self.layer.weight.copy_(torch.from_numpy(drawn[:, :12]))
            self.layer.bias.copy_(torch.from_numpy(drawn[:, 12]))

    def prepare_inputs(self, images: Sequence[np.ndarray]):
        quarters = [image[:8, :8].reshape(2, 4, 2, 4, 3).mean((1, 3)).ravel() / 255 for image in images]
        return torch.tensor(np.array(quarters), dtype=torch.float32)

    def encode(self, images: Sequence[np.ndarray]) -> Features:
        with torch.no_grad():
            return Features(torch.tanh(self.layer(self.prepare_inputs(images))).numpy())

    def copy_network(self):
        copied = torch.nn.Linear(12, 6)
        copied.load_state_dict(self.layer.state_dict())
        return torch.nn.Sequential(copied, torch.nn.Tanh())


@pytest.fixture
def tiny(monkeypatch):
    registry.find("planted-encoder")
    card = ModelCard("tiny-encoder", ("encoder",))
    monkeypatch.setitem(registry._REGISTERED, "tiny-encoder", RegistryEntry(card, TinyEncoder))
    return "tiny-encoder"


def pictures(count, key):
    return list(generator(0, "pictures", key).integers(0, 256, (count, 8, 8, 3), np.uint8))


def episode(key="a"):
    labels = np.array([2, 0, 1, 0, 2, 1, 0, 0, 1, 2])
    return Episode(pictures(10, f"{key} support"), labels, pictures(4, f"{key} query"), 3, key)


def test_without_a_step_it_is_the_linear_head(tiny):
    encoder, one = TinyEncoder(), episode()
    seen = Episode(
        encoder.encode(one.support).vectors, one.support_labels, encoder.encode(one.query).vectors, 3, one.key
    )
    [probe], [scores] = LinearHead(seed=5).classify([seen]), LpFt(tiny, steps=0, seed=5).classify([one])
    np.testing.assert_allclose(scores, probe, atol=1e-5)


def test_tuning_is_plain_descent_on_all_supports(tiny):
    encoder, one = TinyEncoder(), episode()
    network, head = encoder.copy_network(), LpFt(tiny)._train_probe(one)
    optimiser = torch.optim.SGD([*network.parameters(), *head.parameters()], lr=0.2, momentum=0.9)
    inputs, labels = encoder.prepare_inputs(one.support), torch.from_numpy(one.support_labels)
    before = head(network(encoder.prepare_inputs(one.query))).detach().numpy()
    for _ in range(6):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(head(network(inputs)), labels).backward()
        optimiser.step()
    wanted = head(network(encoder.prepare_inputs(one.query))).detach().numpy()
    [scores] = LpFt(tiny, steps=6, rate=0.2).classify([one])
    np.testing.assert_allclose(scores, wanted, atol=1e-4)
    assert np.abs(scores - before).max() > 0.01


def test_an_episode_leaves_no_trace_in_the_next(tiny):
    learner = LpFt(tiny, steps=3, rate=0.5)
    first, second = learner.classify([episode("a"), episode("b")])
    assert np.array_equal(learner.classify([episode("b")])[0], second)
    assert np.array_equal(learner.classify([episode("a")])[0], first)


def test_encoders_that_cannot_be_tuned_are_named():
    with pytest.raises(ModelError, match="'planted-encoder' cannot be tuned"):
        LpFt("planted-encoder")


def test_negative_steps_are_refused(tiny):
    with pytest.raises(OptionError, match=r"-1 steps at rate .* cannot tune"):
        LpFt(tiny, steps=-1)


def test_vectors_are_no_images(tiny):
    vectors = np.zeros((2, 6), np.float32)
    with pytest.raises(ModelError, match="works on images"):
        LpFt(tiny).classify([Episode(vectors, np.array([0, 1]), vectors, 2, "vectors")])


@pytest.mark.real
def test_the_real_encoder_can_be_tuned():
    try:
        encoder = registry.build("efficientnet-lite0", "encoder", {"size": 32})
    except Exception as error:
        pytest.skip(str(error))
    images = pictures(5, "real")
    copied = encoder.copy_network()
    with torch.no_grad():
        vectors = copied(encoder.prepare_inputs(images)).numpy()
    np.testing.assert_allclose(vectors, encoder.encode(images).vectors, atol=1e-5)
    torch.nn.functional.mse_loss(copied(encoder.prepare_inputs(images)), torch.zeros(5, 1280)).backward()
    with torch.no_grad():
        for parameter in copied.parameters():
            if parameter.grad is not None:
                parameter -= parameter.grad
    assert not np.allclose(copied(encoder.prepare_inputs(images)).detach().numpy(), vectors, atol=1e-3)
    np.testing.assert_allclose(vectors, encoder.encode(images).vectors, atol=1e-5)
    args = {"encoder_args": "size=32", "steps": "1"}
    assert [one for one in check_named("lp-ft", "few-shot-learner", args) if not one.passed] == []
