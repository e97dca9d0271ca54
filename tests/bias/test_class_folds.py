import pytest

from hardlook.bias.class_folds import fold_of, split_of_fold, split_of_training
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import OptionError


def test_folds_of_voc_are_those_of_pascal_5i():
    assert split_of_fold(VOC_CLASSES, 0).test == ("aeroplane", "bicycle", "bird", "boat", "bottle")
    assert split_of_fold(VOC_CLASSES, 2).test == ("diningtable", "dog", "horse", "motorbike", "person")
    assert len(split_of_fold(VOC_CLASSES, 3).training) == 15
    assert fold_of(VOC_CLASSES)["tvmonitor"] == 3


def test_every_class_is_tested_once_and_trained_elsewhere():
    splits = [split_of_fold(VOC_CLASSES, fold, 5) for fold in range(5)]
    assert sorted(name for split in splits for name in split.test) == sorted(VOC_CLASSES)
    assert all(set(split.test).isdisjoint(split.training) for split in splits)


def test_training_classes_by_name_keep_the_order_of_the_data():
    split = split_of_training(("cat", "dog", "car"), ["car", "cat"])
    assert split.training == ("cat", "car") and split.test == ("dog",)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: split_of_fold(VOC_CLASSES, 4), "no such fold"),
        (lambda: split_of_fold(VOC_CLASSES, -1), "no such fold"),
        (lambda: split_of_fold(("a", "b"), 0, 1), "from 2 to 2"),
        (lambda: fold_of(("a", "b"), 3), "from 2 to 2"),
        (lambda: split_of_training(("cat",), ["cow"]), "no class 'cow'"),
        (lambda: split_of_training(("cat",), []), "no training class"),
    ],
)
def test_what_cannot_be_is_refused(call, said):
    with pytest.raises(OptionError, match=said):
        call()
