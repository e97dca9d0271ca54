"""The published pair lists on the VOC images that are there, checked against a plain count of the files."""

import math

import one_shot_oracle as oracle
import pytest

from hardlook.benchmarks.toss.benchmark import TOSS
from hardlook.benchmarks.toss.options import TossOptions
from hardlook.errors import DataError
from hardlook.runs.in_memory import Rehearsal

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def data(shared_data):
    found = {"pairs": shared_data / "reference" / "toss", "voc": shared_data / "data" / "VOCdevkit" / "VOC2012"}
    for path in found.values():
        if not path.is_dir():
            pytest.skip(f"no {path.name} here")
    return found


@pytest.fixture(scope="module")
def counted(data):
    """(kept, lost) pairs of fold 0 by list, read off the files."""
    images = {path.stem for path in (data["voc"] / "JPEGImages").iterdir()}
    masks = {
        path.stem for name in ("SegmentationClassAug", "SegmentationClass") for path in (data["voc"] / name).glob("*")
    }
    found = {}
    files = [path for path in (data["pairs"] / "data" / "tiers").rglob("split0_*.txt")]
    for path in sorted(files):
        kept = lost = 0
        for line in path.read_text().splitlines():
            tokens = [word.split("/")[-1].removesuffix(".jpg") for word in line.split()[:2]]
            there = ["_".join(token.split("_")[-2:]) for token in tokens]
            if all(image in images and image in masks for image in there):
                kept += 1
            else:
                lost += 1
        found[path.stem] = kept, lost
    return found


@pytest.fixture(scope="module")
def available(data):
    given = {"data": data, "folds": "0", "tiers": "1,2", "subset": "available", "resamples": 0}
    return Rehearsal("toss", given)


@pytest.fixture(scope="module")
def empty(available):
    return available.records("empty")


def test_what_is_kept_and_missing_is_what_the_files_say(available, empty, counted):
    assert len(counted) == 5
    assert sum(sum(pair) for pair in counted.values()) == 20_000 + 20_620 + 20_034 + 19_444 + 2_422
    assert len(empty) == sum(kept for kept, _ in counted.values()) > 0
    [note] = [note for note in available.left_out if note.what == "pairs without their files"]
    assert note.count == sum(lost for _, lost in counted.values())
    assert all(text.startswith(("the image 20", "the mask of ")) for text in note.examples)
    for split in ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal"):
        here = empty.filter((empty["tier"] == 1) & (empty["split"] == split))
        assert len(here) == counted[f"split0_q_{split}"][0]
    assert (empty["tier"] == 2).sum() == counted["split0_tier2"][0]


def test_lists_count_as_published_and_scores_as_not_comparable(available, empty):
    assert all(kind.startswith("published, ") for kind in empty["listing"].unique())
    card = TOSS.score(empty, available.options)
    assert card.scores
    assert all(score.comparable.startswith("not comparable: only a part") for score in card.scores)


def test_an_empty_answer_has_nothing_of_tier_one(available, empty):
    card = available.score("empty")
    assert card.get("lca").value == card.get("hca").value == 0
    assert {score.value for score in card.scores if score.name in ("miou", "iou", "pair-iou")} == {0.0}
    assert card.get("rejection").value == 1


def test_scs_is_a_quarter_or_names_the_fold_that_lacks_levels(available, empty):
    card = available.score("empty")
    expected = oracle.scs(empty.filter(empty["tier"] == 2).to_dicts(), "paper", "ignored")
    without = [note.examples for note in card.left_out if note.what == "folds without scs"]
    if expected is None:
        assert math.isnan(card.get("scs").value)
        assert without == [("fold 0",)]
    else:
        assert card.get("scs").value == expected == 0.25
        assert without == []


def test_the_whole_image_has_the_share_of_the_truth(available):
    records = available.records("whole-image")
    assert (records["predicted"] == records["pixels"]).all()
    assert (records["intersection"] == records["truth"]).all()
    assert (records["predicted_void"] == records["void"]).all()
    assert (records["void"] > 0).any()


def test_all_pairs_are_refused_while_images_are_missing(data, counted):
    lost = sum(lost for name, (_, lost) in counted.items() if "tier2" not in name)
    with pytest.raises(DataError, match=f"{lost} pairs need images or masks that are not there: the image 20"):
        TOSS.units(TossOptions(data=data, folds=(0,), tiers=(1,)))


def test_five_shots_take_images_of_the_class_that_any_list_names(data):
    """Few fixed pairs are whole here, yet their lists name hundreds of images that are there."""
    listed = TOSS.units(TossOptions(data=data, fixed=True, folds=(0,), subset="available", shots=(1, 5)))
    there = {path.stem for path in (data["voc"] / "JPEGImages").iterdir()}
    text = (data["pairs"] / "data" / "fixedsplits" / "pascal5i" / "split0_test.txt").read_text()
    named = {token for token in text.split() if token.partition("_")[2] in there}
    five = [unit.payload for unit in listed if unit.payload.slices["shots"] == 5]
    assert len(five) == len(listed) / 2 > 0
    for pair in five:
        number = pair.query.partition("_")[0]
        assert len(set(pair.supports)) == 5
        assert {token for token in named if token.startswith(f"{number}_")} >= set(pair.supports)
        assert pair.query not in pair.supports[1:]
    assert not [note for note in listed.left_out if "shots" in note.what]
