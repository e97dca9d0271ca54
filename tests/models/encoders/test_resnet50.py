"""ResNet50's encoder: shapes of its layers, equal alone and in a batch, and what its real weights know of images."""

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.models.encoders.efficientnet_lite0 import parse_layers
from hardlook.models.encoders.resnet50 import LAYERS, ResNet50
from hardlook.models.weights.install import get_weights_status

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def weights():
    if get_weights_status("resnet50-imagenet") != "installed":
        pytest.skip("resnet50-imagenet is not installed; hardlook weights install resnet50-imagenet")


def test_layers_by_name():
    assert parse_layers("stride8+stride32", LAYERS) == (2, 4)
    with pytest.raises(OptionError, match="no layer is called 'head'"):
        parse_layers("head", LAYERS)
    with pytest.raises(OptionError, match="names a layer twice"):
        parse_layers("stride8+stride8", LAYERS)
    with pytest.raises(OptionError, match="size 8 leaves nothing"):
        ResNet50(size=8)


@pytest.mark.real
def test_vectors_and_maps(weights):
    encoder = ResNet50(size=64, layer="stride16+stride32")
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, size, dtype=np.uint8) for size in ((40, 60, 3), (80, 80, 3))]
    found = encoder.encode(images)
    assert found.vectors.shape == (2, 2048) and [one.shape for one in found.maps] == [(3072, 4, 4)] * 2
    alone = encoder.encode(images[1:])
    assert (alone.maps[0] == found.maps[1]).all() and (alone.vectors[0] == found.vectors[1]).all()
    assert np.linalg.norm(found.maps[0][:1024], axis=0) == pytest.approx(np.ones((4, 4)), abs=1e-5)
    assert encoder.encode([]).vectors.shape == (0, 2048)


@pytest.mark.real
def test_its_vectors_are_those_that_the_classifier_names(weights, shared_data):
    """The last layer of the weights calls a picture of an aeroplane an airliner, a warplane or a wing."""
    from hardlook.data.images import read_image
    from hardlook.models.weights.resnet50_keras import read_resnet50

    image = read_image(shared_data / "data" / "voc_train_320" / "JPEGImages" / "2007_000243.jpg")
    state = read_resnet50()
    logits = ResNet50().encode([image]).vectors @ state["fc.weight"].numpy().T + state["fc.bias"].numpy()
    assert logits[0].argmax() in (404, 895, 908)
