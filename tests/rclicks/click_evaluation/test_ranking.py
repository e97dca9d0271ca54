"""Which click model is better: paired leads over the same stems."""

import numpy as np
import pytest

from hardlook.rclicks.click_evaluation.ranking import describe_rankings, rank_models
from hardlook.rclicks.click_evaluation.stem_scores import StemScores


def rows(values, metric):
    plain = dict.fromkeys(("ks", "pl1", "wd", "nss", "pde"), 0.0)
    names = {
        "click_type": "first",
        "device": "",
        "display_mode": "",
        "clicks": 9,
        "ks_undefined": 0,
        "fell_back": False,
    }
    return [
        StemScores(full_stem=f"s{i}", dataset="d", image_key=f"s{i}", **{**plain, metric: value}, **names)
        for i, value in enumerate(values)
    ]


def test_a_steady_lead_is_better_even_where_stems_differ_widely():
    stems = np.linspace(0.1, 5, 30)
    ranking = rank_models("wd", {"far": rows(stems + 0.01, "wd"), "near": rows(stems, "wd")}, resamples=200)
    assert ranking.best == "near" and ranking.beats("far")
    assert ranking.leads["far"].value == pytest.approx(-0.01)


def test_a_lead_that_comes_and_goes_is_none():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=40)
    models = {"one": rows(noise, "nss"), "two": rows(noise[::-1], "nss"), "bad": rows(noise - 9, "nss")}
    ranking = rank_models("nss", models, resamples=500)
    assert ranking.beats("bad")
    [words] = describe_rankings([ranking])
    assert (
        words.startswith("By NSS, ") and "better than bad." in words and "does not differ significantly from" in words
    )


def test_metrics_with_one_verdict_share_a_sentence():
    models = {name: rows([0.5] * 12, "ks") for name in ("b", "a")}
    rankings = [rank_models(metric, models, resamples=50) for metric in ("ks", "wd")]
    assert describe_rankings(rankings) == ["By KS and WD, a and b do not differ significantly."]


def test_one_image_is_too_few_however_far_the_models_are_apart():
    models = {"near": rows([0.1], "wd"), "far": rows([9.0], "wd")}
    rankings = [rank_models(metric, models, resamples=50) for metric in ("ks", "wd")]
    assert rankings[1].best == "near" and rankings[1].verdict_on("far") == "too few images to compare"
    words = describe_rankings(rankings)
    assert words == ["By KS and WD, there are too few images to compare far and near."]


def test_what_a_lead_means_in_a_table():
    stems = np.linspace(0.1, 5, 30)
    models = {"far": rows(stems + 1, "wd"), "near": rows(stems, "wd"), "same": rows(stems, "wd")}
    ranking = rank_models("wd", models, resamples=100)
    assert ranking.best == "near"
    assert (ranking.verdict_on("far"), ranking.verdict_on("same")) == ("better", "no significant difference")


@pytest.mark.parametrize(("images", "said"), [(9, "too few images to compare"), (10, "better")])
def test_nine_images_on_one_side_are_no_verdict(images, said):
    stems = np.linspace(0.1, 5, images)
    ranking = rank_models("wd", {"far": rows(stems + 1, "wd"), "near": rows(stems, "wd")}, resamples=100)
    assert ranking.verdict_on("far") == said
