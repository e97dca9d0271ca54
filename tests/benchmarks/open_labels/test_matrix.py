import csv

import numpy as np
import pytest

from hardlook.benchmarks.open_labels.matrix import free_similarities, label_similarity, named_labels, read_class_sets
from hardlook.benchmarks.open_labels.options import OpenLabelOptions, label_readings
from hardlook.benchmarks.open_labels.published import PUBLISHED_MIOU
from hardlook.errors import HardlookError
from hardlook.labels.load import load_label_set


def test_senses_come_from_the_first_set_that_knows_the_word():
    published = named_labels(["mouse"], [load_label_set("coco80", "published")])
    corrected = named_labels(["mouse"], [load_label_set("coco80", "corrected")])
    assert published.labels[0].synset != corrected.labels[0].synset


def test_a_word_that_nobody_knows_has_no_sense_and_no_guess():
    (label,) = named_labels(["glorp"], [])
    assert (label.synset, label.hypernym) == (None, None)
    with pytest.raises(HardlookError, match="glorp"):
        label_similarity(["cat", "glorp"], None, OpenLabelOptions())


def test_special_treatments_are_counted():
    similarity = label_similarity(["stop sign", "cat", "background"], "coco80", OpenLabelOptions())
    assert {note.why: note.examples for note in similarity.notes} == {
        "stands for no label": ("background",),
        "not in WordNet": ("stop sign",),
    }
    assert similarity.matrix[2].tolist() == [0, 0, 1]


def test_a_matrix_of_ones_own_is_taken_by_name(tmp_path):
    rows = [["", "dog", "cat"], ["dog", 1, 0.7], ["cat", 0.7, 1]]
    with (tmp_path / "S.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    options = OpenLabelOptions(similarity=tmp_path / "S.csv")
    assert label_similarity(["cat", "dog"], None, options).matrix.tolist() == [[1, 0.7], [0.7, 1]]
    assert label_readings(options)[0].value == "S.csv"


def test_compared_measures_are_those_asked_for():
    found = free_similarities(["cat", "dog"], None, OpenLabelOptions(compare=("path", "wup")))
    assert list(found) == ["path", "wup"]
    assert found["path"][0, 1] == pytest.approx(0.2)
    assert found["wup"][0, 1] == pytest.approx(0.857, abs=1e-3)


def test_class_sets_are_masks_over_the_names(tmp_path):
    (tmp_path / "sets.json").write_text('{"base": ["Traffic_Light"], "novel": ["cat"]}')
    masks = read_class_sets(tmp_path / "sets.json", ["cat", "traffic light", "sky"])
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        "base": [False, True, False],
        "novel": [True, False, False],
    }


@pytest.mark.real
def test_published_results_are_the_papers(shared_data):
    with (shared_data / "reference" / "open" / "published" / "table4_semantic.csv").open() as stream:
        printed = {
            (row["method"], row["dataset"]): (float(row["vanilla"]), float(row["open"]))
            for row in csv.DictReader(stream)
            if row["vanilla"]
        }
    ours = {
        (row.method, row.source.removeprefix("Table 4, ")): tuple(
            np.round([100 * row.values["miou"], 100 * row.values["open-miou"]], 6)
        )
        for row in PUBLISHED_MIOU
    }
    assert ours == printed


def test_doubtful_senses_are_counted(tmp_path):
    (tmp_path / "truth.csv").write_text("name,synset,status\ncrane,crane.n.05,\nowl,owl.n.01,proposed\n")
    (tmp_path / "words.csv").write_text("name,synset\ncrane,crane.n.04\n")
    options = OpenLabelOptions(pred_labels=str(tmp_path / "words.csv"), gt=tmp_path)
    notes = label_similarity(["crane", "owl", "bottle"], str(tmp_path / "truth.csv"), options).notes
    assert {(note.what, note.examples) for note in notes} == {
        ("labels with a special treatment", ("owl",)),
        ("borrowed senses", ("bottle",)),
        ("names with two senses", ("crane",)),
    }
