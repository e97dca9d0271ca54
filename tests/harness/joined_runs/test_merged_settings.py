"""The settings of joined runs: which may differ, and what becomes of those that do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.harness.joined_runs.merged_settings import (
    FOLD,
    check_same_settings,
    find_fold_template,
    merge_models,
    merge_options,
    merge_parts,
)
from hardlook.harness.registry import find_benchmark

TEXTS = st.text(st.characters(exclude_characters="0123456789{}"), max_size=6)


@given(TEXTS, TEXTS, TEXTS, st.integers(2, 4))
def test_a_template_gives_back_every_value(before, between, after, count):
    template = f"{before}{FOLD}{between}{FOLD}{after}"
    values = [template.replace(FOLD, str(fold)) for fold in range(count)]
    found = find_fold_template(values, list(range(count)))
    assert [found.replace(FOLD, str(fold)) for fold in range(count)] == values


def test_values_without_a_rule_have_no_template():
    assert find_fold_template(["fold0.pth", "fold2.pth"], [0, 1]) is None
    assert find_fold_template(["fold0.pth", "fold1.pth"], [0, None]) is None
    assert find_fold_template(["a", "a"], [0, 1]) is None


def make_manifest(name="toss", model="net", args=None, weights=None, parts=None, **options):
    kept = {"name": model, "role": "r", "args": args or {}, "source": "s", "weights": weights or {}, "device": ""}
    return {
        "benchmark": {"name": name, "version": "1"},
        "model": kept,
        "options": {"data": {"voc": "/voc", "pairs": "/toss"}, **options},
        "answers": {"fingerprint": f"of {options}", "parts": parts or {}},
        "sessions": [],
    }


def check(*manifests, name="toss"):
    folders = [Path(f"run{place}") for place in range(len(manifests))]
    check_same_settings(find_benchmark(name), folders, manifests)


def test_lists_of_units_may_differ_and_are_united():
    runs = [make_manifest(folds=[2], tiers=[1]), make_manifest(folds=[0], tiers=[1, 3])]
    check(*runs)
    merged = merge_options(find_benchmark("toss"), runs)
    assert (merged["folds"], merged["tiers"]) == ([0, 2], [1, 3])
    assert merge_options(find_benchmark("toss"), [runs[0], make_manifest(tiers=[2])])["folds"] is None
    # The first number of shots gives the headline scores: the order stays.
    shots = [make_manifest(shots=[5]), make_manifest(shots=[1])]
    assert merge_options(find_benchmark("toss"), shots)["shots"] == [5, 1]


def test_other_data_may_have_other_units_and_changed_data_may_not():
    one = make_manifest("rclicks", data={"berkeley": "/berkeley"}, parts={"data berkeley": "a"})
    two = make_manifest("rclicks", data={"grabcut": "/grabcut"}, parts={"data grabcut": "b"})
    check(one, two, name="rclicks")
    merged = merge_options(find_benchmark("rclicks"), [one, two])
    assert merged["data"] == {"berkeley": "/berkeley", "grabcut": "/grabcut"}
    other = make_manifest("rclicks", data={"berkeley": "/more"}, parts={"data berkeley": "c"})
    check(one, other, name="rclicks")
    assert merge_options(find_benchmark("rclicks"), [one, other, two])["data"] == {
        "berkeley": "/berkeley",
        "berkeley-2": "/more",
        "grabcut": "/grabcut",
    }
    changed = make_manifest("rclicks", data={"berkeley": "/berkeley"}, parts={"data berkeley": "c"})
    with pytest.raises(OptionError, match="data berkeley: a in run0, c in run1"):
        check(one, changed, name="rclicks")


def test_weights_may_differ_and_other_arguments_only_by_the_fold():
    one = make_manifest(args={"weights": "/w/best.pth", "k": 1}, weights={"best.pth": "aa"}, folds=[0])
    two = make_manifest(args={"weights": "/v/best.pth", "k": 1}, weights={"best.pth": "bb"}, folds=[3])
    check(one, two)
    merged = merge_models([one, two])
    assert merged["args"] == {"weights": "/w/best.pth, /v/best.pth", "k": 1}
    assert merged["weights"] == {"best.pth": "aa", "best.pth (2)": "bb"}
    check(make_manifest(args={"fold": 0}, folds=[0]), make_manifest(args={"fold": 3}, folds=[3]))
    with pytest.raises(OptionError, match="--model-arg k: 1 in run0, 2 in run1"):
        check(one, make_manifest(args={**two["model"]["args"], "k": 2}, weights={"best.pth": "b"}, folds=[3]))


def test_a_model_that_fingerprints_its_weights_is_one_model_if_its_code_is():
    runs = [
        make_manifest(args={"weights": f"fold{fold}.pth"}, weights={f"fold{fold}.pth": "x"}, folds=[fold])
        for fold in (0, 1)
    ]
    for fold, run in enumerate(runs):
        run["model"]["source"] = f"own fingerprint {fold}"
    with pytest.raises(OptionError, match="the model's code"):
        check(*runs)
    for run in runs:
        run["sessions"] = [{"model_code": "same"}]
    check(*runs)


def test_stored_predictions_and_a_model_are_not_joined():
    stored = make_manifest()
    stored["model"] = None
    with pytest.raises(OptionError, match="--model: net in run0, stored predictions in run1"):
        check(make_manifest(), stored)
    assert merge_models([stored, stored]) is None


def test_the_parts_say_what_the_records_depend_on():
    runs = [make_manifest(parts={"threads": 1, "batch size": 8, "data x": "a", "option folds": [0]}, folds=[0])]
    runs += [make_manifest(parts={"threads": 1, "batch size": 4, "data x": "b", "option folds": [1]}, folds=[1])]
    merged = merge_parts(runs, {"folds": None}, merge_models(runs), "all")
    assert merged == {
        "threads": 1,
        "batch size": 8,
        "data x": "a",
        "data x-2": "b",
        "option folds": None,
        "units": "all",
        "joined": [run["answers"]["fingerprint"] for run in runs],
    }
