import pytest

from hardlook.errors import DataError, OptionError
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import Label, LabelSet, is_void_label, label_text

KITCHEN = LabelSet(
    "kitchen",
    "file",
    (
        Label(5, "screen", isthing=True),
        Label(7, "screen door", ("screen", "mesh"), isthing=True),
        Label(9, "blind", ("shade", "mesh"), isthing=False),
    ),
)


@pytest.mark.parametrize("written", ["dining table", "Dining-Table", "diningtable", "DINING_TABLE"])
def test_case_spaces_and_dashes_do_not_count(written):
    assert load_label_set("voc20").find(written).name == "diningtable"
    assert load_label_set("coco80").find(written).name == "dining table"


def test_a_name_goes_before_an_alias():
    assert KITCHEN.find("screen").id == 5
    assert KITCHEN.find("shade").id == 9


def test_an_alias_of_two_labels_is_refused():
    with pytest.raises(OptionError, match="several labels") as refusal:
        KITCHEN.find("mesh")
    assert "screen door, blind" in refusal.value.remedy


def test_a_label_as_ade20k_writes_it():
    assert load_label_set("ade150").find("building, edifice").id == 1


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(OptionError, match="no label 'aeroplan'") as refusal:
        load_label_set("voc20").find("aeroplan")
    assert "aeroplane" in refusal.value.remedy


def test_arrays_by_row():
    assert KITCHEN.ids.tolist() == [5, 7, 9] == KITCHEN.category_ids.tolist()
    assert KITCHEN.things.tolist() == [True, True, False]
    assert KITCHEN.names == ("screen", "screen door", "blind")


def test_things_unsaid_is_an_error():
    with pytest.raises(DataError, match="do not say thing or stuff: aeroplane"):
        _ = load_label_set("pc59").things


@pytest.mark.parametrize(
    ("asked", "remedy"), [("coco8", "coco80"), ("ADE847", "ade847"), ("lvis", "annotation json"), ("qqq", "voc20")]
)
def test_unknown_sets_say_what_there_is(asked, remedy):
    with pytest.raises(OptionError) as refusal:
        load_label_set(asked)
    assert remedy in refusal.value.remedy


@pytest.mark.parametrize(
    ("labels", "name", "read"),
    [
        ("voc20", "tvmonitor", "tv monitor"),
        ("voc20", "diningtable", "dining table"),
        ("voc20", "sofa", "sofa"),
        ("coco133", "sky-other-merged", "sky"),
        ("coco133", "floor-wood", "wood floor"),
        ("coco133", "playingfield", "playing field"),
        ("coco80", "traffic light", "traffic light"),
        ("pc459", "hot-air balloon", "hot-air balloon"),
    ],
)
def test_shipped_labels_are_read_as_people_would(labels, name, read):
    assert label_text(load_label_set(labels).find(name)) == read


def test_no_shipped_wording_keeps_the_files_own_marks():
    for name in ("voc20", "pc59", "pc459", "ade150", "ade847", "coco80", "coco133", "coco171", "cityscapes19"):
        for label in load_label_set(name):
            assert not {"merged", "other", "stuff"} & set(label_text(label).replace("-", " ").split()), label.name


def test_only_a_label_without_a_sense_stands_for_none():
    assert is_void_label(Label(0, "Background"))
    assert not is_void_label(Label(0, "background", (), "background.n.02"))
    assert not is_void_label(Label(0, "sky"))
