import pytest

from hardlook.labels.label_set import Label
from hardlook.labels.load import load_label_set
from hardlook.labels.wording import has_no_meaning, wording


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
    assert wording(load_label_set(labels).find(name)) == read


def test_no_shipped_wording_keeps_the_files_own_marks():
    for name in ("voc20", "pc59", "pc459", "ade150", "coco80", "coco133", "coco171", "cityscapes19"):
        for label in load_label_set(name):
            assert not {"merged", "other", "stuff"} & set(wording(label).replace("-", " ").split()), label.name


def test_only_a_label_without_a_sense_stands_for_none():
    assert has_no_meaning(Label(0, "Background"))
    assert not has_no_meaning(Label(0, "background", (), "background.n.02"))
    assert not has_no_meaning(Label(0, "sky"))
