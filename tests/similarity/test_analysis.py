"""The analysis of label similarity: measures side by side, orders and neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from hardlook.errors import DataError, OptionError
from hardlook.similarity.analysis import (
    DEFAULT_MEASURES,
    analyse_labels,
    list_neighbours,
    list_similar_pairs,
    order_by_similarity,
    sample_runs,
    select_example_rows,
    select_heat_map_rows,
    smooth_density,
)
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.matrix import DensityCurve
from hardlook.similarity.senses import find_polysemy

SENSES = {"crane": "crane.n.04", "forklift": "forklift.n.01", "heron": "heron.n.02", "dog": "dog.n.01"}


def label_set(senses, **aliases):
    rows = [Label(i, name, aliases.get(name, ()), sense) for i, (name, sense) in enumerate(senses.items())]
    return LabelSet("yard", "file", tuple(rows))


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("crane 1 0 1\nforklift 1 0 .2\nheron 0 1 0\ndog 0 .5 1\n")
    return path


def test_measures_side_by_side(vectors):
    found = analyse_labels(label_set(SENSES), ["path", "lin", "word2vec"], sources={"word2vec": vectors})
    assert list(found.views) == ["path", "lin", "word2vec"] and found.wordnet_measure == "path"
    pairs = np.triu_indices(4, 1)
    for a, first in enumerate(found.matrices.values()):
        for b, second in enumerate(found.matrices.values()):
            assert found.agreement[a, b] == pytest.approx(spearmanr(first[pairs], second[pairs]).statistic)
    view = found.views["path"]
    assert view.summary.mean == pytest.approx(view.result.matrix.mean())
    assert view.density.density.mean() == pytest.approx(1) == view.smooth.density.mean()
    assert np.diag(found.overlap) == pytest.approx(np.ones(3)) and found.nearest == 3


def test_defaults_leave_out_what_is_not_installed_and_say_why(monkeypatch):
    from hardlook.errors import ModelError

    def missing(name):
        raise ModelError(f"the weights {name!r} are not installed", remedy="install them")

    # minilm first: imported while `install.locate_weights` is replaced, it would keep the replacement for good.
    monkeypatch.setattr("hardlook.models.weights.install.locate_weights", missing)
    monkeypatch.setattr("hardlook.models.weights.install.locate_weights", missing)
    found = analyse_labels(label_set(SENSES))
    assert tuple(found.views) == DEFAULT_MEASURES
    assert list(found.left_out) == ["glove", "sentence"]
    assert "not installed; install them" in found.left_out["glove"]
    with pytest.raises(ModelError, match="not installed"):
        analyse_labels(label_set(SENSES), ["path", "glove"])


def test_a_source_adds_its_measure(vectors):
    found = analyse_labels(label_set(SENSES), sources={"fasttext": vectors})
    assert tuple(found.views)[:5] == (*DEFAULT_MEASURES, "fasttext")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"measures": ["nearness"]}, "no measure 'nearness'"),
        ({"measures": []}, "no measure was given"),
        ({"measures": ["path"], "sources": {"word2vec": "x"}}, "not among the measures"),
        ({"sources": {"nearness": "x"}}, "no measure 'nearness'"),
    ],
)
def test_wrong_options(arguments, said):
    with pytest.raises(OptionError, match=said):
        analyse_labels(label_set(SENSES), **arguments)


def test_labels_too_few_or_without_a_sense():
    with pytest.raises(OptionError, match="2 labels are too few"):
        analyse_labels(load_two())
    with pytest.raises(DataError, match="have no sense"):
        analyse_labels(label_set({**SENSES, "zzqx": None}), ["path"])


def load_two():
    return label_set({"dog": "dog.n.01", "heron": "heron.n.02"})


def test_labels_that_stand_for_nothing_are_no_obstacle():
    labels = label_set({"background": None, **SENSES})
    found = analyse_labels(labels, ["path", "lesk"])
    assert found.matrices["path"][0].tolist() == [1, 0, 0, 0, 0]
    assert "background" not in [case.label for case in find_polysemy(labels, "path")]


@given(st.lists(st.floats(0, 5), min_size=4, max_size=30).filter(lambda values: sum(values) > 0.1))
def test_smoothing_keeps_the_area(heights):
    centres = (np.arange(len(heights)) + 0.5) / len(heights)
    smooth = smooth_density(DensityCurve(centres, np.array(heights)), 0.02).density
    assert smooth.mean() == pytest.approx(np.mean(heights)) and (smooth >= 0).all()


def random_similarity(seed, size):
    drawn = np.random.default_rng(seed).random((size, size))
    matrix = (drawn + drawn.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


@given(st.integers(0, 1000), st.integers(1, 30), st.integers(3, 40))
def test_a_picture_has_each_label_once_and_no_more_than_fit(seed, labels, size):
    rows = select_heat_map_rows(random_similarity(seed, labels), size)
    assert len(set(rows.tolist())) == len(rows) and len(rows) <= max(size, 1)
    assert set(rows.tolist()) <= set(range(labels))
    assert len(rows) == labels or labels > size


def test_families_lie_together_and_a_sample_has_runs():
    family = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    matrix = np.where(family[:, None] == family, 0.8, 0.1)
    np.fill_diagonal(matrix, 1)
    found = family[order_by_similarity(matrix)]
    assert np.count_nonzero(np.diff(found)) == 2
    sample = sample_runs(np.arange(1203), 60)
    assert len(sample) == 60 and sample[0] < 40 and sample[-1] > 1163
    assert (np.diff(sample) == 1).sum() == 40


def test_pairs_and_lists_by_hand():
    matrix = np.array([[1, 0.5, 0.2, 0.5], [0.5, 1, 0.9, 0], [0.2, 0.9, 1, 0.1], [0.5, 0, 0.1, 1]])
    assert list_similar_pairs(matrix, "abcd", 3) == [("b", "c", 0.9), ("a", "b", 0.5), ("a", "d", 0.5)]
    found = list_neighbours(label_set(SENSES), {"path": matrix}, 0, 2)
    assert found == {"path": (("forklift", 0.5), ("dog", 0.5))}
    assert select_example_rows({"path": matrix}, count=2, nearest=1) == (1, 2)
