"""Which model is better: by intervals of paired differences."""

import numpy as np
import pytest

from hardlook.clicks.evaluation import StemScores
from hardlook.commands.clicks.model_pairs import better, standings_in_words


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
    standing = better("wd", {"far": rows(stems + 0.01, "wd"), "near": rows(stems, "wd")}, resamples=200)
    assert standing.best == "near" and standing.beats("far")
    assert standing.leads["far"].value == pytest.approx(-0.01)


def test_a_lead_that_comes_and_goes_is_none():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=40)
    models = {"one": rows(noise, "nss"), "two": rows(noise[::-1], "nss"), "bad": rows(noise - 9, "nss")}
    standing = better("nss", models, resamples=500)
    assert standing.beats("bad")
    [words] = standings_in_words([standing])
    assert words.startswith("By NSS, ") and "better than bad." in words and "cannot be told apart from" in words


def test_metrics_with_one_verdict_share_a_sentence():
    models = {name: rows([0.5] * 6, "ks") for name in ("b", "a")}
    standings = [better(metric, models, resamples=50) for metric in ("ks", "wd")]
    assert standings_in_words(standings) == ["By KS and WD, a and b cannot be told apart."]


def test_one_image_is_too_few_however_far_the_models_are_apart():
    models = {"near": rows([0.1], "wd"), "far": rows([9.0], "wd")}
    standings = [better(metric, models, resamples=50) for metric in ("ks", "wd")]
    assert standings[1].best == "near" and standings[1].says("far") == "too few images to compare"
    words = standings_in_words(standings)
    assert words == ["By KS and WD, there are too few images to compare far and near."]


def test_what_a_lead_means_in_a_table():
    stems = np.linspace(0.1, 5, 30)
    models = {"far": rows(stems + 1, "wd"), "near": rows(stems, "wd"), "same": rows(stems, "wd")}
    standing = better("wd", models, resamples=100)
    assert standing.best == "near"
    assert (standing.says("far"), standing.says("same")) == ("better", "cannot be told apart")


@pytest.mark.parametrize(("images", "said"), [(5, "too few images to compare"), (6, "better")])
def test_five_images_on_one_side_are_no_verdict(images, said):
    stems = np.linspace(0.1, 5, images)
    standing = better("wd", {"far": rows(stems + 1, "wd"), "near": rows(stems, "wd")}, resamples=100)
    assert standing.says("far") == said
