"""M_ce and M_te against a loop over images, and against the planted encoder's dial."""

import numpy as np
import pytest

from hardlook.data.concept_context import list_images
from hardlook.errors import ModelError, OptionError
from hardlook.metacoco.contexts.text_cosines import (
    CONCEPT_PROMPT,
    CONTEXT_PROMPT,
    encode_dataset_images,
    measure_cosines,
)
from hardlook.models.registry import build
from hardlook.models.roles import Features
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld


class Stumbling:
    """Answers once, then raises what it was given."""

    dimension = 2

    def __init__(self, error):
        self.error, self.asked = error, 0

    def encode(self, images):
        self.asked += 1
        if self.asked == 2:
            raise self.error
        return Features(images[0][0, :1, :2].astype("float32"))


@pytest.mark.parametrize("error", [ModelError("too dark"), RuntimeError("too dark")])
def test_an_error_of_the_encoder_names_the_file(tmp_path, error):
    rows = list_images(write_world(tmp_path / "world", "concept-context", count=4, size=(96, 72)))
    with pytest.raises(ModelError, match="too dark") as caught:
        encode_dataset_images(Stumbling(error), "stumbling", rows, tmp_path / "cache")
    assert caught.value.file == str(rows[1].path)


class Letters:
    """Texts as unit vectors drawn from their letters; what was asked is kept."""

    dimension = 16

    def __init__(self):
        self.asked = []

    def encode_text(self, texts):
        self.asked += texts
        rows = np.array([np.random.default_rng([ord(letter) for letter in text]).normal(size=16) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_against_a_loop():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(30, 16)).astype(np.float32)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    concepts = [f"thing_{i % 3}" for i in range(30)]
    contexts = [("snow", "fog")[i % 5 == 0] for i in range(30)]
    encoder = Letters()
    found = measure_cosines(encoder, images, concepts, "concept", CONCEPT_PROMPT, seed=0)
    measure_cosines(encoder, images, contexts, "context", "in {context}", seed=0)
    assert sorted(encoder.asked) == [*(f"a photo of a thing {i}" for i in range(3)), "in fog", "in snow"]
    own, by_concept = [], {}
    for image, concept in zip(images, concepts, strict=True):
        text = Letters().encode_text([f"a photo of a {concept.replace('_', ' ')}"])[0]
        own.append(float(np.dot(image, text)))
        by_concept.setdefault(concept, []).append(own[-1])
    assert found.values == pytest.approx(own, abs=1e-6)
    assert found.name == "M_ce" and found.micro.value == pytest.approx(np.mean(own), abs=1e-6)
    assert found.macro.value == pytest.approx(np.mean([np.mean(one) for one in by_concept.values()]), abs=1e-6)
    assert found.micro.value in found.micro.interval and found.macro.value in found.macro.interval


def test_macro_over_contexts_counts_each_context_once():
    images = np.eye(16, dtype=np.float32)[[0, 0, 0, 1]]
    found = measure_cosines(Letters(), images, ["snow", "snow", "snow", "fog"], "context", CONTEXT_PROMPT, seed=0)
    snow, fog = found.values[0], found.values[3]
    assert found.name == "M_te" and found.micro.value == pytest.approx((3 * snow + fog) / 4)
    assert found.macro.value == pytest.approx((snow + fog) / 2)


def test_the_encoders_dial_moves_one_measure_up_and_the_other_down():
    world = PlantedWorld(count=48, salient=True, size=(96, 72))
    images = [scene.image for scene in world]
    concepts, contexts = [world.concept(i) for i in range(48)], [world.context(i) for i in range(48)]
    means = []
    for dial in (0.0, 0.5, 1.0):
        encoder = build("planted-image-text-encoder", "image-text-encoder", {"context": str(dial)})
        vectors = encoder.encode_images(images)
        ce = measure_cosines(encoder, vectors, concepts, "concept", CONCEPT_PROMPT, seed=0)
        te = measure_cosines(encoder, vectors, contexts, "context", CONTEXT_PROMPT, seed=0)
        means.append((ce.micro.value, te.micro.value, ce.nearest))
    assert means[0][0] > means[1][0] > means[2][0] and means[0][1] < means[1][1] < means[2][1]
    assert means[0][2] > 0.9 > 0.3 > means[2][2]


def test_a_prompt_without_a_place():
    with pytest.raises(OptionError, match="no place for the label"):
        measure_cosines(Letters(), np.eye(16, dtype=np.float32)[:1], ["a"], "concept", "a photo", seed=0)
