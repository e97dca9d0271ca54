import csv

import pytest

from hardlook.errors import HardlookError
from hardlook.open_vocabulary.label_similarity import (
    compute_compared_similarities,
    compute_label_similarity,
    find_labels,
)
from hardlook.open_vocabulary.options import SimilarityOptions, similarity_readings
from hardlook.similarity.label_sets import load_label_set


def test_senses_come_from_the_first_set_that_knows_the_word():
    published = find_labels(["mouse"], [load_label_set("coco80", "published")])
    corrected = find_labels(["mouse"], [load_label_set("coco80", "corrected")])
    assert published.labels[0].synset != corrected.labels[0].synset


def test_a_word_that_nobody_knows_has_no_sense_and_no_guess():
    (label,) = find_labels(["glorp"], [])
    assert (label.synset, label.hypernym) == (None, None)
    with pytest.raises(HardlookError, match="glorp"):
        compute_label_similarity(["cat", "glorp"], SimilarityOptions())


def test_special_treatments_are_counted():
    similarity = compute_label_similarity(["stop sign", "cat", "background"], SimilarityOptions(labels="coco80"))
    assert {note.why: note.examples for note in similarity.notes} == {
        "stands for no label": ("background",),
        "not in WordNet": ("stop sign",),
    }
    assert similarity.matrix[2].tolist() == [0, 0, 1]


def test_a_matrix_of_ones_own_is_taken_by_name(tmp_path):
    rows = [["", "dog", "cat"], ["dog", 1, 0.7], ["cat", 0.7, 1]]
    with (tmp_path / "S.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    options = SimilarityOptions(similarity=tmp_path / "S.csv")
    assert compute_label_similarity(["cat", "dog"], options).matrix.tolist() == [[1, 0.7], [0.7, 1]]
    assert similarity_readings(options)[0].value == "S.csv"


def test_a_compared_measure_has_one_source():
    with pytest.raises(ValueError, match="glove has two sources"):
        SimilarityOptions(compare=("glove=a.npy", "path", "glove=b.npy"))
    assert SimilarityOptions(compare=("path", "path")).compare == ("path", "path")


def test_compared_measures_are_those_asked_for():
    found = compute_compared_similarities(["cat", "dog"], SimilarityOptions(compare=("path", "wup")))
    assert list(found) == ["path", "wup"]
    assert found["path"][0, 1] == pytest.approx(0.2)
    assert found["wup"][0, 1] == pytest.approx(0.857, abs=1e-3)


def test_doubtful_senses_are_counted(tmp_path):
    (tmp_path / "truth.csv").write_text("name,synset,status\ncrane,crane.n.05,\nowl,owl.n.01,proposed\n")
    (tmp_path / "words.csv").write_text("name,synset\ncrane,crane.n.04\n")
    options = SimilarityOptions(
        labels=str(tmp_path / "truth.csv"), pred_labels=str(tmp_path / "words.csv"), gt=tmp_path
    )
    notes = compute_label_similarity(["crane", "owl", "bottle"], options).notes
    assert {(note.what, note.examples) for note in notes} == {
        ("labels with a special treatment", ("owl",)),
        ("borrowed senses", ("bottle",)),
        ("names with two senses", ("crane",)),
    }


def test_names_of_the_data_that_are_all_cocos_have_cocos_senses(tmp_path):
    names = list(load_label_set("coco80").names)[:30]
    data, given = SimilarityOptions(gt=tmp_path), SimilarityOptions(gt=tmp_path, labels="coco80")
    found, expected = (compute_label_similarity(names, options) for options in (data, given))
    assert (found.matrix == expected.matrix).all()
    (note,) = (note for note in found.notes if note.what == "labels with the senses of coco80")
    assert note.kept and note.count == 30 and "no --labels" in note.why
    assert all("coco80" not in one.what for one in expected.notes)
    compared = compute_compared_similarities(names, data)
    assert (compared["wup"] == compute_compared_similarities(names, given)["wup"]).all()
    # Panoptic data has stuff as well.
    stuff = [*load_label_set("coco133").names]
    assert compute_label_similarity(stuff, data).matrix.shape == (133, 133)


def test_names_that_no_shipped_set_has_together_are_those_of_the_data(tmp_path):
    names = [*load_label_set("coco80").names, "glorp"]
    with pytest.raises(HardlookError, match=r"of 81 labels of the data \(no --labels\) have no sense") as caught:
        compute_label_similarity(names, SimilarityOptions(gt=tmp_path))
    assert "--labels" in caught.value.remedy
    with pytest.raises(HardlookError, match="labels of planted-world"):
        compute_label_similarity(["glorp"], SimilarityOptions())


def test_senses_that_were_borrowed_before_stay_as_they_were(tmp_path):
    notes = compute_label_similarity(["cat", "dog", "bottle"], SimilarityOptions(gt=tmp_path)).notes
    assert [note.what for note in notes] == ["borrowed senses"]
