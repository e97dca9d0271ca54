"""Every measure makes a similarity matrix; what each needs, how labels are treated, and the published facts."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers_folders import write_folder

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.models.weights.install import get_weights_status
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.measures import MEASURES, PUBLISHED, compute_similarity, find_measure

SENSES = [("dog", "dog.n.01"), ("cat", "cat.n.01"), ("car", "car.n.01"), ("traffic light", "traffic_light.n.01")]

THINGS = LabelSet("things", "file", tuple(Label(i, name, (), sense) for i, (name, sense) in enumerate(SENSES)))

ROWS = {"dog": [1, 1, 0], "cat": [1, 0, 0], "car": [-1, 0, 1], "traffic": [0, 0, 2], "light": [0, 2, 0]}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "few.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items()))
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    made = {}

    def folder(family):
        if family not in made:
            made[family] = write_folder(tmp_path_factory.mktemp(family), family)
        return made[family]

    return folder


def literal_cosine(rows):
    """Cosines of all pairs by the textbook formula, negatives to 0."""
    rows = np.asarray(rows, float)
    lengths = np.sqrt((rows**2).sum(1))
    return np.maximum([[x @ y / (a * b) for y, b in zip(rows, lengths, strict=True)] for x, a in zip(rows, lengths, strict=True)], 0)  # fmt: skip # noqa: E501


def assert_similarity(result, labels):
    assert result.names == labels.names
    assert result.matrix.shape == (len(labels), len(labels)) and result.matrix.dtype == np.float64
    assert np.array_equal(result.matrix, result.matrix.T)
    assert (np.diag(result.matrix) == 1).all()
    assert result.matrix.min() >= 0 and result.matrix.max() <= 1
    assert result.description and result.fingerprint
    with pytest.raises(ValueError, match="read-only"):
        result.matrix[0, 0] = 0


@pytest.mark.parametrize("measure", ["path", "wup", "lin", "lesk", "identity"])
def test_measures_that_need_nothing(measure):
    assert_similarity(compute_similarity(THINGS, measure), THINGS)


def test_path_and_wu_palmer_of_the_specification():
    assert compute_similarity(THINGS, "path").matrix[0, 1] == pytest.approx(0.2)
    assert compute_similarity(THINGS, "wup").matrix[0, 1] == pytest.approx(0.857, abs=5e-4)
    assert np.array_equal(compute_similarity(THINGS, "identity").matrix, np.eye(4))


@pytest.mark.parametrize("measure", ["glove", "word2vec", "fasttext"])
def test_word_vectors_by_hand(measure, vectors):
    result = compute_similarity(THINGS, measure, source=vectors)
    assert_similarity(result, THINGS)
    rows = [ROWS["dog"], ROWS["cat"], ROWS["car"], np.mean([ROWS["traffic"], ROWS["light"]], axis=0)]
    assert result.matrix == pytest.approx(literal_cosine(rows))
    assert result.treated == (("traffic light", "mean of 'traffic' and 'light'"),)


@pytest.mark.parametrize("measure", ["clip", "bert", "gpt2", "t5"])
def test_text_encoders_from_folders(measure, folders):
    from hardlook.models.registry import build

    result = compute_similarity(THINGS, measure, source=folders(measure))
    assert_similarity(result, THINGS)
    encoder = build(find_measure(measure).model, "text-encoder", {"path": folders(measure)})
    assert result.matrix == pytest.approx(literal_cosine(encoder.encode_text(THINGS.names)), abs=1e-5)


def test_arguments_reach_the_encoder_and_the_fingerprint(folders):
    plain = compute_similarity(THINGS, "clip", source=folders("clip"))
    bare = compute_similarity(THINGS, "clip", source=folders("clip"), arguments={"template": "{label}"})
    assert not np.allclose(plain.matrix, bare.matrix, atol=1e-3)
    assert plain.fingerprint != bare.fingerprint
    assert "template '{label}'" in bare.description


def with_label(*more):
    return LabelSet("more", "file", (*THINGS.labels, *more))


def test_unknown_words_are_treated_as_asked(vectors):
    labels = with_label(Label(4, "hound", (), "hound.n.01"))
    with pytest.raises(DataError, match="1 of 5 labels have no vector: hound") as caught:
        compute_similarity(labels, "glove", source=vectors, unknown="error")
    assert caught.value.file == str(vectors)

    above = compute_similarity(labels, "glove", source=vectors)
    assert above.treated[-1] == ("hound", "unknown: stands as 'dog', from WordNet")
    assert above.matrix[4, 0] == pytest.approx(1)

    zero = compute_similarity(labels, "glove", source=vectors, unknown="zero")
    assert zero.treated[-1] == ("hound", "unknown: similarity 0 to all others")
    assert np.array_equal(zero.matrix[4], [0, 0, 0, 0, 1])

    drawn = [compute_similarity(labels, "glove", source=vectors, unknown="random", seed=seed) for seed in (0, 0, 1)]
    assert drawn[0].treated[-1] == ("hound", "unknown: a random vector (seed 0)")
    assert np.array_equal(drawn[0].matrix, drawn[1].matrix)
    assert not np.array_equal(drawn[0].matrix, drawn[2].matrix)
    assert np.array_equal(drawn[0].matrix[:4, :4], zero.matrix[:4, :4])


def test_a_random_vector_does_not_depend_on_the_other_labels(vectors):
    first, second = Label(4, "gnu"), Label(5, "yak")
    both = compute_similarity(with_label(first, second), "glove", source=vectors, unknown="random").matrix
    alone = compute_similarity(with_label(second), "glove", source=vectors, unknown="random").matrix
    assert np.array_equal(both[5, :4], alone[4, :4])


def test_hypernym_without_a_sense_is_an_error_and_not_a_guess(vectors):
    with pytest.raises(DataError, match="no vector: gnu"):
        compute_similarity(with_label(Label(4, "gnu")), "glove", source=vectors)
    with pytest.raises(DataError, match="have no sense"):
        compute_similarity(with_label(Label(4, "gnu")), "path")
    with pytest.raises(OptionError, match="random"):
        compute_similarity(with_label(Label(4, "gnu")), "path", unknown="random")


def test_aliases_come_before_the_treatment_of_unknown_words(vectors):
    labels = with_label(Label(4, "pooch", ("doggy", "dog")), Label(5, "red car", ("car",)))
    result = compute_similarity(labels, "glove", source=vectors, unknown="error")
    assert result.treated[-2:] == (("pooch", "as 'dog'"), ("red car", "as 'car'"))
    assert [result.matrix[4, 0], result.matrix[5, 2]] == pytest.approx([1, 1])


@pytest.mark.parametrize("measure", ["path", "wup", "lin", "lesk", "glove", "clip", "identity"])
def test_background_is_similar_to_nothing_under_every_measure(measure, vectors, folders):
    labels = LabelSet("with background", "file", (Label(0, "background"), *THINGS.labels))
    source = {"glove": vectors}.get(measure) or (folders("clip") if measure == "clip" else None)
    result = compute_similarity(labels, measure, source=source, unknown="error")
    assert np.array_equal(result.matrix[0], [1, 0, 0, 0, 0])
    assert result.treated[0] == ("background", "stands for no label: similarity 0 to all others")
    assert np.array_equal(result.matrix[1:, 1:], compute_similarity(THINGS, measure, source=source).matrix)


def test_labels_without_a_synset_of_their_own_are_counted():
    result = compute_similarity(load_label_set("coco80"), "path")
    assert result.treated == (("stop sign", "not in WordNet: stands as street_sign.n.01"),)
    zero = compute_similarity(load_label_set("coco80"), "path", unknown="zero")
    place = zero.names.index("stop sign")
    assert zero.matrix[place].sum() == 1 and zero.treated[0][0] == "stop sign"


@given(st.permutations(range(4)))
def test_the_order_of_labels_changes_nothing(order):
    turned = LabelSet("turned", "file", tuple(THINGS.labels[place] for place in order))
    for measure in ("path", "wup", "lesk"):
        expected = compute_similarity(THINGS, measure).matrix[np.ix_(order, order)]
        assert np.array_equal(compute_similarity(turned, measure).matrix, expected)


def test_no_labels_at_all_give_an_empty_matrix(vectors):
    nothing = LabelSet("none", "file", ())
    for measure, source in (("identity", None), ("glove", vectors)):
        assert compute_similarity(nothing, measure, source=source).matrix.shape == (0, 0)


@pytest.mark.parametrize(
    ("measure", "options", "expected"),
    [
        ("paht", {}, "there is no measure 'paht'"),
        ("word2vec", {}, "needs a file"),
        ("fasttext", {}, "needs a file"),
        ("clip", {}, "needs a folder"),
        ("path", {"source": "a.txt"}, "takes no source"),
        ("path", {"unknown": "guess"}, "no such treatment"),
        ("path", {"arguments": {"template": "x"}}, "takes no arguments"),
    ],
)
def test_options_that_do_not_fit(measure, options, expected):
    with pytest.raises(OptionError, match=expected) as caught:
        compute_similarity(THINGS, measure, **options)
    assert caught.value.remedy


def test_weights_that_are_not_installed_are_named(monkeypatch):
    from hardlook.models.weights import install

    def absent(name):
        raise ModelError(f"the weights {name!r} are not installed", remedy=f"hardlook weights install {name}")

    monkeypatch.setattr(install, "locate_weights", absent)
    with pytest.raises(ModelError, match="glove-6b-50d"):
        compute_similarity(THINGS, "glove")


def test_every_measure_says_what_it_is_and_needs():
    assert len(PUBLISHED) == 11 and len(MEASURES) == 13
    for name, measure in MEASURES.items():
        assert measure.name == name and measure.sentence.endswith(".") and measure.needs
        assert measure.comparable or measure.note or name == "identity"
        assert bool(measure.model) == (measure.kind == "text encoder")


@pytest.mark.real
def test_published_facts_are_those_of_the_papers_table(shared_data):
    path = shared_data / "reference" / "open" / "published" / "table3_similarity_stats.csv"
    if not path.is_file():
        pytest.skip(f"no published tables at {path}")
    with path.open() as stream:
        rows = {row["measure"].lower().replace("-", ""): row for row in csv.DictReader(stream)}
    assert set(rows) == set(PUBLISHED)
    for name, row in rows.items():
        assert (MEASURES[name].mean, MEASURES[name].std) == (float(row["mean"]), float(row["std"]))


def installed(name):
    if get_weights_status(name) != "installed":
        pytest.skip(f"{name} is not installed; hardlook weights install {name}")


@pytest.mark.real
@pytest.mark.parametrize(("measure", "weights"), [("glove", "glove-6b-50d"), ("sentence", "all-minilm-l6-v2")])
def test_real_vectors_on_coco80(measure, weights):
    installed(weights)
    pytest.importorskip("torch")
    labels = load_label_set("coco80")
    result = compute_similarity(labels, measure, unknown="error")
    assert_similarity(result, labels)
    at = {name: place for place, name in enumerate(labels.names)}
    for word, near, far in [("dog", "cat", "car"), ("bus", "train", "sheep"), ("fork", "spoon", "zebra")]:
        assert result.matrix[at[word], at[near]] > result.matrix[at[word], at[far]]
    apart = result.matrix[~np.eye(80, dtype=bool)]
    # The published means of word vectors and language models lie between .15 and .7, their deviations near .12.
    assert 0.1 < apart.mean() < 0.5 and 0.05 < apart.std() < 0.25


@pytest.mark.real
def test_real_glove_knows_every_label_of_the_shipped_sets_somehow():
    installed("glove-6b-50d")
    for name in ("voc20", "pc59", "pc459", "ade150", "coco133", "coco171", "cityscapes19"):
        labels = load_label_set(name)
        result = compute_similarity(labels, "glove", unknown="hypernym")
        assert_similarity(result, labels)
        unknown = [label for label, how in result.treated if how.startswith("unknown")]
        assert len(unknown) <= 0.01 * len(labels)
