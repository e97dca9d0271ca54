"""The encoders' and the saliency model's dials: concept against context, meaning against spelling, truth or centre."""

import numpy as np
from planted_measures import assert_flat, assert_rises, images, scenes

from hardlook.models.planted.encoders import PlantedEncoder, PlantedImageTextEncoder, PlantedTextEncoder, word_vector
from hardlook.models.planted.saliency import PlantedSaliency
from hardlook.world.vocabulary import CONCEPTS, CONTEXTS, LABELS, sibling_of, unrelated_to

NAMES = [label.name for label in CONCEPTS]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def gram(vectors):
    return unit(vectors) @ unit(vectors).T


def test_siblings_are_nearer_than_strangers():
    for name in NAMES:
        assert (
            word_vector(name) @ word_vector(sibling_of(name))
            > word_vector(name) @ word_vector(unrelated_to(name)) + 0.3
        )
    words = [label.name for label in LABELS] + [context.name for context in CONTEXTS]
    assert np.linalg.matrix_rank(np.array([word_vector(word) for word in words])) == len(words)


def test_the_encoder_drifts_from_concept_to_context():
    options = {"salient": True}
    concepts = np.array([word_vector(scene.scene.subject.concept) for scene in scenes(**options)])
    contexts = np.array([word_vector(scene.scene.context) for scene in scenes(**options)])

    def loss(dial):
        vectors = unit(PlantedEncoder(context=dial).encode(images(**options)).vectors)
        return 1 - float((vectors * concepts).sum(axis=1).mean())

    assert_rises(loss)
    assert loss(0.0) < 0.1
    vectors = unit(PlantedEncoder(context=1.0).encode(images(**options)).vectors)
    assert float((vectors * contexts).sum(axis=1).mean()) > 0.9


def test_turning_the_space_changes_no_cosine():
    plain = PlantedEncoder().encode(images())
    turned = PlantedEncoder(turn=0.7).encode(images())
    assert np.abs(plain.vectors - turned.vectors).max() > 0.1
    assert np.allclose(gram(plain.vectors), gram(turned.vectors), atol=1e-5)
    cells = [features.maps[0].reshape(64, -1).T for features in (plain, turned)]
    assert np.allclose(cells[0] @ cells[0].T, cells[1] @ cells[1].T, atol=1e-5)


def test_maps_are_means_of_the_classes_in_each_cell():
    scene = scenes()[0]
    [cells] = PlantedEncoder().encode([scene.image]).maps
    assert cells.shape == (64, 9, 12)
    whole = [
        (r, c)
        for r in range(9)
        for c in range(12)
        if len(np.unique(scene.classes[8 * r : 8 * r + 8, 8 * c : 8 * c + 8])) == 1
    ]
    assert whole
    for row, column in whole:
        code = scene.classes[8 * row, 8 * column]
        expected = word_vector(LABELS[code - 1].name) if code else np.zeros(64)
        assert np.allclose(cells[:, row, column], expected, atol=1e-6)
    assert PlantedEncoder().encode([scene.image[:9, :17]]).maps[0].shape == (64, 2, 3)


def test_the_text_encoder_forgets_its_families():
    def loss(dial, turn=0.0):
        encoder = PlantedTextEncoder(forgetful=dial, turn=turn)
        one, two, three = (
            unit(encoder.encode_text(words))
            for words in (NAMES, [sibling_of(n) for n in NAMES], [unrelated_to(n) for n in NAMES])
        )
        return 0.4 - float(((one * two).sum(axis=1) - (one * three).sum(axis=1)).mean())

    assert_rises(loss)
    assert_flat(lambda dial: loss(0.3, turn=dial), tolerance=1e-5)


def test_words_are_found_in_sentences_and_unknown_ones_have_vectors():
    encoder = PlantedTextEncoder()
    plain, sentence, unknown, again, other = encoder.encode_text(
        ["cat", "A photo of a CAT.", "quasar", "quasar", "nebula"]
    )
    assert np.allclose(plain, sentence)
    assert np.array_equal(unknown, again)
    assert abs(float(unknown @ other)) < 0.6
    assert abs(float(unknown @ plain)) < 0.6


def test_the_image_text_encoder_leaves_its_concept():
    options = {"salient": True}

    def loss(dial, turn=0.0):
        encoder = PlantedImageTextEncoder(context=dial, turn=turn)
        texts = encoder.encode_text([f"a photo of a {scene.scene.subject.concept}" for scene in scenes(**options)])
        return 1 - float((encoder.encode_images(images(**options)) * texts).sum(axis=1).mean())

    assert_rises(loss)
    assert_flat(lambda dial: loss(0.3, turn=dial), tolerance=1e-5)


def test_salience_drifts_to_the_centre():
    def error(dial, faint=0.0):
        maps = PlantedSaliency(centre=dial, faint=faint).saliency(images())
        shown = [(found > 0.5) != scene.salient for found, scene in zip(maps, scenes(), strict=True)]
        return float(np.mean([wrong.mean() for wrong in shown]))

    assert_rises(lambda dial: error(dial) * 5)
    assert error(0.0) < 0.02
    assert_flat(lambda dial: error(0.3, faint=dial))
