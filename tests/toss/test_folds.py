"""Folds: the classes that each tests, and tier 3 answered by the model of each."""

from __future__ import annotations

import numpy as np
import pytest
from one_shot_folders import write_general_folder, write_one_shot_folder
from toss_records import frame_of, rows_of_ious, scorecard

from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import OptionError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.toss.folds import choose_fixed_set, describe_unknown_class, find_tested_classes, list_folds
from hardlook.toss.options import TossOptions
from hardlook.toss.published import PairsRun, describe_comparability


def test_pascal_5i_and_coco_20i_test_the_classes_that_their_definitions_name(tmp_path):
    # PASCAL-5i: fold f tests 5f+1 to 5f+5; COCO-20i: fold f tests f+1, f+5, ...
    pascal = find_tested_classes(TossOptions(data={"pairs": tmp_path, "voc": tmp_path}), VOC_CLASSES)
    assert pascal[1] == ("bus", "car", "cat", "chair", "cow")
    numbers = [str(number) for number in range(1, 81)]
    coco = find_tested_classes(TossOptions(data={"pairs": tmp_path, "coco": tmp_path}), numbers)
    assert coco[2] == tuple(str(number) for number in range(3, 81, 4))
    assert sorted(sum(coco.values(), ()), key=int) == numbers


def test_other_data_have_the_folds_of_their_manifest_or_none(tmp_path):
    options = TossOptions(data={"pairs": tmp_path, "voc": tmp_path})
    assert find_tested_classes(options, ("cat", "dog")) == {}
    (tmp_path / "manifest.json").write_text('{"schema": "hardlook.built-toss/1", "folds": [["dog"], ["cat"]]}')
    assert find_tested_classes(options, ("cat", "dog")) == {0: ("dog",), 1: ("cat",)}


@pytest.mark.parametrize(
    ("given", "folds"),
    [({}, [0, 1]), ({"folds": "3"}, [3]), ({"tiers": "3"}, [0, 1]), ({"fixed": True}, [0, 1])],
)
def test_the_folds_of_a_run_are_those_given_or_those_of_its_lists(tmp_path, given, folds):
    data = write_one_shot_folder(tmp_path, folds=(0, 1)).data
    options = TossOptions(data=data, **given)
    assert list_folds(options, options.tiers, fixed=options.fixed) == folds
    assert choose_fixed_set(data["pairs"], coco=True) == "pascal5i"


PAIRS = [("1_apple_1", "1_apple_2"), ("1_apple_3", "1_apple_1"), ("1_apple_4", "1_apple_5"), ("1_apple_5", "1_apple_2")]


def test_the_models_of_all_folds_answer_the_same_pairs_of_tier_3(tmp_path):
    data = write_general_folder(tmp_path, PAIRS, scenes=120)
    given = {"data": data, "tiers": "3", "folds": "0,2", "resamples": 0}
    run = InMemoryRun("toss", {**given, "per_fold": True, "shots": "1,2"})
    records = run.records("empty")
    assert sorted(records.filter(records["shots"] == 1)["unit"]) == sorted(
        f"tier3-fold{fold}-{line:05d}" for fold in (0, 2) for line in (1, 2, 3, 4)
    )
    supports = {fold: records.filter(records["fold"] == fold).sort("unit")["support"].to_list() for fold in (0, 2)}
    assert supports[0] == supports[2]
    assert set(InMemoryRun("toss", given).records("empty")["fold"]) == {-1}
    with pytest.raises(OptionError, match="--per-fold: the lists have no folds"):
        InMemoryRun("toss", {"data": data, "tiers": "3", "per_fold": True})


def test_a_run_of_one_fold_has_that_folds_model(tmp_path):
    assert TossOptions(folds="2").per_fold and TossOptions(folds=(2,)).per_fold
    assert not TossOptions(folds="1-2").per_fold and not TossOptions().per_fold
    assert not TossOptions(folds="2", per_fold=False).per_fold
    assert not TossOptions(folds="2", pred=tmp_path).per_fold
    (tmp_path / "tier3-fold1-00001.png").touch()
    assert TossOptions(pred=tmp_path).per_fold


def test_gs_is_the_mean_over_the_models_of_the_mean_over_classes():
    cells = {(3, fold, "", name): 10 * fold + 20 * place for fold in range(4) for place, name in enumerate("abc", 1)}
    card = scorecard(frame_of(rows_of_ious(cells)))
    by_hand = [np.mean([(10 * fold + 20 * place) / 100 for place in (1, 2, 3)]) for fold in range(4)]
    assert card.get("gs").value == pytest.approx(np.mean(by_hand))
    for fold in range(4):
        assert card.get("gs", fold=str(fold)).value == pytest.approx(by_hand[fold])
    assert card.get("iou", tier="3", **{"class": "b"}).value == pytest.approx(np.mean([0.4, 0.5, 0.6, 0.7]))
    assert "one model ran" not in card.get("gs").comparable


@pytest.mark.parametrize(
    ("folds", "where", "words"),
    [
        ((0, 1, 2, 3), {}, "comparable with the published table"),
        ((0, 1), {"fold": "1"}, "comparable with the published table"),
        ((0, 1), {}, "not comparable: the paper averages over folds 0 to 3"),
        ((-1,), {}, "not comparable: the paper averages over the models of four folds, and one model ran"),
    ],
)
def test_gs_is_comparable_where_the_models_of_all_folds_ran(folds, where, words):
    assert describe_comparability("gs", where, PairsRun("", {3: folds}), TossOptions()).startswith(words)


def test_unknown_classes_have_a_sentence():
    assert describe_unknown_class(25, VOC_CLASSES) == "class 25 does not exist: there are classes 1 to 20"
