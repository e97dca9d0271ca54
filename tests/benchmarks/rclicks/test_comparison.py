"""When a score may stand beside the paper's: one sentence that names all that differs."""

import pytest

from hardlook.benchmarks.rclicks.comparison import comparable_words
from hardlook.benchmarks.rclicks.meanings import SCORES
from hardlook.benchmarks.rclicks.options import RClicksOptions

# As the paper ran it: spec, sections 1, 4, 5 and 6.
SIZES = {"grabcut": 50, "berkeley": 100, "davis": 345, "coco-mval": 800, "tetris": 2531}
CENTRES = ("noc90-base", "nof-base", "auc-base", "base-iou1")


def options(*datasets, **more):
    data = {name: f"/{name}" for name in datasets or ("grabcut",)}
    return RClicksOptions(**{"data": data, "clicks": "clickability", "perfect": "released", **more})


@pytest.mark.parametrize(("dataset", "size"), SIZES.items())
def test_a_whole_dataset_under_the_papers_settings_is_comparable(dataset, size):
    assert comparable_words(dataset, size, options(dataset), "noc90").startswith("comparable with the published scores")
    assert comparable_words(dataset, size - 1, options(dataset), "noc90").startswith("not comparable: ")


def test_all_datasets_in_the_mean():
    words = comparable_words("", 3826, options(*SIZES), "dgr")
    assert words.startswith(
        "comparable with the published scores of GrabCut, Berkeley, DAVIS, COCO-MVal and TETRIS, in"
    )
    assert comparable_words("", 3825, options(*SIZES), "dgr").startswith(
        "not comparable: 3,825 instances were scored, and the published scores are those of 3,826"
    )


def test_one_dataset_alone_is_all_that_ran():
    assert comparable_words("", 50, options(), "dsb") == comparable_words("grabcut", 50, options(), "dsb")


def test_other_spellings_of_a_dataset_are_the_same():
    words = comparable_words("", 800, options("COCO_MVal"), "noc90")
    assert words.startswith("comparable with the published scores of COCO-MVal")


def test_other_datasets_and_the_planted_world():
    assert comparable_words("voc", 50, options("voc"), "noc90") == "not comparable: the paper has no scores of voc"
    assert "no scores of voc" in comparable_words("", 100, options("grabcut", "voc"), "noc90")
    words = comparable_words("", 100, options("grabcut", "instances", "images"), "noc90")
    assert words == "not comparable: the paper has no scores of instances"
    assert "planted world" in comparable_words("planted", 48, RClicksOptions(), "noc90-base")


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"clicks": "uniform"}, "drawn by uniform"),
        ({"groups": 4}, "4 groups"),
        ({"group_rule": "exact"}, "group-rule=exact"),
        ({"rounds": 5}, "5 rounds"),
    ],
)
def test_each_setting_is_named(setting, word):
    words = comparable_words("grabcut", 50, options(**setting), "noc90")
    assert words.startswith("not comparable: ")
    assert word in words


def test_all_that_differs_is_named_at_once():
    words = comparable_words("grabcut", 7, options(clicks="uniform", rounds=3, groups=2), "noc90")
    assert words.count(";") == 3


@pytest.mark.parametrize("score", CENTRES)
def test_the_centre_rule_needs_no_click_model(score):
    other = options(clicks="uniform", groups=4, group_rule="exact")
    assert comparable_words("grabcut", 50, other, score).startswith("comparable")
    assert "authors' weights" not in comparable_words("grabcut", 50, other, score)


def test_one_click_needs_no_rounds():
    few = options(rounds=1)
    for score in ("base-iou1", "sample-iou1"):
        assert comparable_words("grabcut", 50, few, score).startswith("comparable")
    assert comparable_words("grabcut", 50, few, "auc-base").startswith("not comparable")


@pytest.mark.parametrize(("users", "words"), [("planted", "simulated"), ("none", "no people's clicks")])
def test_peoples_scores_need_people(users, words):
    assert words in comparable_words("grabcut", 50, options(user_clicks=users), "user-iou1")
    real = options(user_clicks="/clicks.csv", clicks="uniform", rounds=1)
    assert comparable_words("grabcut", 50, real, "nsr1").endswith(
        "provided that the clicks are the published clicks.csv"
    )


def test_readings_touch_their_own_scores_alone():
    nof = options(reading={"nof": "ours"})
    dhh = options(reading={"dhh": "paper"}, halves=True)
    spoilt = {
        meaning.name: [
            comparable_words("grabcut", 50, chosen, meaning.name).startswith("not comparable") for chosen in (nof, dhh)
        ]
        for meaning in SCORES
    }
    assert {name for name, (by_nof, _) in spoilt.items() if by_nof} == {
        *("nof", "nof-std", "nof-base", "dsb-nof", "dgr-nof", "dhh-nof"),
        *("user-iou1", "user-iou1-std", "nsr1"),
    }
    assert {name for name, (_, by_dhh) in spoilt.items() if by_dhh} == {
        *("dhh", "dhh-nof", "dhh-iou"),
        *("user-iou1", "user-iou1-std", "nsr1"),
    }


def test_perfect_masks_are_told_where_areas_are():
    stops = options(perfect="ours")
    assert "perfect mask" in comparable_words("grabcut", 50, stops, "auc")
    assert "perfect mask" not in comparable_words("grabcut", 50, stops, "noc90")


@pytest.mark.parametrize("score", ["noc85", "noc95", "noc85-base", "noc95-base"])
def test_what_the_paper_does_not_print(score):
    assert comparable_words("grabcut", 50, options(), score).startswith("not in the paper")


def test_without_a_name_every_setting_counts():
    assert comparable_words("grabcut", 50, options(reading={"nof": "ours"})).startswith("not comparable")
    assert comparable_words("grabcut", 50, options()).startswith("comparable")
