import re

import numpy as np
import pytest

from hardlook.errors import DataError, OptionError
from hardlook.open_vocabulary.miou.options import OpenMiouOptions, SemanticOptions
from hardlook.open_vocabulary.miou.units import list_sources, list_units, prepare_unit


def test_data_without_a_reader_is_refused_with_what_can_be_read(tmp_path):
    with pytest.raises(OptionError, match="no reader for this data") as caught:
        list_units(SemanticOptions(data={"cityscapes": tmp_path}))
    assert "--data voc=DIR" in caught.value.remedy


@pytest.mark.parametrize("given", [{"gt": "x"}, {"pred": "x"}])
def test_truth_and_predictions_go_together(given):
    with pytest.raises(OptionError, match="go together"):
        list_units(SemanticOptions(**given))


def test_label_maps_need_names(tmp_path):
    with pytest.raises(OptionError, match="no option names their labels"):
        list_units(SemanticOptions(data={"images": tmp_path, "masks": tmp_path}))


@pytest.mark.parametrize("content", ["", "cat\ncat\n"])
def test_names_must_be_there_and_differ(tmp_path, content):
    (tmp_path / "labels.txt").write_text(content)
    with pytest.raises(DataError):
        list_units(SemanticOptions(data={"images": tmp_path, "masks": tmp_path}, labels=str(tmp_path / "labels.txt")))


def test_predictions_without_truth_are_listed(tmp_path):
    (tmp_path / "labels.txt").write_text("cat\n")
    for folder in ("gt", "pred"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "pred" / "stray.npy", np.zeros((2, 2), int))
    options = SemanticOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", labels=str(tmp_path / "labels.txt"))
    with pytest.raises(DataError, match="1 predictions have no truth: stray"):
        list_units(options)


def test_the_planted_world_is_its_own_fingerprint():
    one, other = (list_sources(SemanticOptions(seed=seed)) for seed in (0, 1))
    assert one != other
    assert set(one) == {"planted world"}


def test_void_of_the_world_is_ignored():
    (unit, *_) = list_units(SemanticOptions(scenes=1))
    content = prepare_unit(unit).payload
    assert set(np.unique(content.truth_map)) <= {*range(len(content.labels)), -1}


def numbered(tmp_path, stored, **options):
    """The true map that the dataset makes of stored numbers."""
    for folder in ("gt", "pred"):
        (tmp_path / folder).mkdir(exist_ok=True)
        np.save(tmp_path / folder / "a.npy", np.array([stored]))
    (unit,) = list_units(SemanticOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", **options))
    return prepare_unit(unit).payload.truth_map[0].tolist()


def test_numberings_of_label_maps(tmp_path):
    assert numbered(tmp_path, [0, 149, 255], labels="ade150") == [0, 149, -1]
    assert numbered(tmp_path, [0, 1, 150], labels="ade150", numbering="one-based") == [-1, 0, 149]
    # COCO's own ids have gaps: 13 is the stop sign (12th), 90 the toothbrush (80th), 200 the rug (133rd).
    ids = {"labels": "coco133", "numbering": "category-id", "ignore": 0}
    assert numbered(tmp_path, [0, 1, 13, 90, 200], **ids) == [-1, 0, 11, 79, 132]


@pytest.mark.parametrize(
    ("stored", "options"),
    [
        ([150], {"labels": "ade150"}),
        ([-1], {"labels": "ade150"}),
        ([151], {"labels": "ade150", "numbering": "one-based"}),
        ([12], {"labels": "coco133", "numbering": "category-id"}),
    ],
)
def test_numbers_that_are_no_label_are_named(tmp_path, stored, options):
    with pytest.raises(DataError, match=rf"the truth holds numbers \[{stored[0]}\]") as caught:
        numbered(tmp_path, stored, **options)
    assert caught.value.unit == "a"
    assert "--numbering" in caught.value.remedy


def test_an_ignored_number_that_is_a_label_is_refused(tmp_path):
    # The 256th of Pascal Context's 459 labels has the number 255.
    with pytest.raises(OptionError, match="--ignore 255 is the number of the label") as caught:
        numbered(tmp_path, [255], labels="pc459")
    assert "65535" in caught.value.remedy
    assert numbered(tmp_path, [255, 65535], labels="pc459", ignore=65535) == [255, -1]


def test_ids_of_a_label_file_are_its_numbers(tmp_path):
    (tmp_path / "labels.csv").write_text("id,name\n1,cat\n7,dog\n")
    assert numbered(tmp_path, [7, 1, 255], labels=str(tmp_path / "labels.csv")) == [1, 0, -1]
    with pytest.raises(DataError, match=r"numbers \[0\]"):
        numbered(tmp_path, [0], labels=str(tmp_path / "labels.csv"))


def test_predictions_have_their_own_numbers_and_nothing_of_them_is_ignored(tmp_path):
    for folder, stored in (("gt", [0, 1, 5]), ("pred", [1, 0, -1])):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.array([stored]))
    options = OpenMiouOptions(
        gt=tmp_path / "gt", pred=tmp_path / "pred", labels="coco133", numbering="category-id", ignore=0,
        pred_numbering="index", pred_labels="voc20",
    )  # fmt: skip
    (unit,) = list_units(options)
    content = prepare_unit(unit).payload
    assert content.truth_map.tolist() == [[-1, 0, 4]]
    assert content.predicted_map.tolist() == [[1, 0, -1]]
    assert content.predicted_labels[0] == "aeroplane"


@pytest.mark.parametrize(
    ("stored", "options", "unknown"),
    [
        ([0, 149, 255, -1], {}, []),
        ([0, 30000, 150], {}, [150, 30000]),
        ([0, 1, 150, 255], {"pred_numbering": "one-based"}, []),
        ([1, 151], {"pred_numbering": "one-based"}, [151]),
        ([0, 255], {"ignore": 65535}, [255]),
        ([20, -1], {"pred_labels": "voc20"}, [20]),
    ],
)
def test_numbers_of_predictions_that_are_no_label_are_named(tmp_path, stored, options, unknown):
    for folder, numbers in (("gt", [0] * len(stored)), ("pred", stored)):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.array([numbers]))
    (unit,) = list_units(OpenMiouOptions(gt=tmp_path / "gt", pred=tmp_path / "pred", labels="ade150", **options))
    if not unknown:
        assert prepare_unit(unit).payload.predicted_map.shape == (1, len(stored))
        return
    with pytest.raises(
        DataError, match=re.escape(f"the prediction holds numbers {unknown} that are none of its")
    ) as caught:
        prepare_unit(unit)
    assert caught.value.unit == "a" and caught.value.file.endswith("pred/a.npy")
    assert "--pred-numbering" in caught.value.remedy
