"""Predicted masks: counted in records, stored ones, and those that do not fit or are missing."""

import warnings
from dataclasses import replace

import cv2
import numpy as np
import polars as pl
import pytest
from one_shot_folders import FIXED, one_shot_run, whole_records, write_one_shot_folder
from troubled_one_shot import Listens

from hardlook.caching import ArrayCache
from hardlook.errors import RunError
from hardlook.harness.benchmark import Unit
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.toss.evaluation import SLICES, decode_prediction, make_context, make_record
from hardlook.toss.pairs import OneShotPair, PairSettings, read_pair
from hardlook.toss.planted_pairs import PlantedScenes
from hardlook.world.planted import PlantedWorld


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder that no test changes."""
    return write_one_shot_folder(tmp_path_factory.mktemp("whole"))


def test_stored_masks_are_scored_in_place_of_a_model(whole, tmp_path):
    units = [
        unit for batch in InMemoryRun("toss", {"data": whole.data, "fixed": True}).prepared for unit in batch.units
    ]
    (tmp_path / "masks").mkdir()
    for unit in units:
        cv2.imwrite(str(tmp_path / "masks" / f"{unit.id}.png"), unit.payload.truth.mask.astype(np.uint8) * 255)
    given = {"fixed": True, "pred": tmp_path / "masks", "model": None}
    done = one_shot_run(tmp_path / "run", whole.data, **given)
    assert {score.value for score in done.scored.scorecard.scores} == {1.0}
    assert done.scored.scorecard.model == "stored predictions"
    (tmp_path / "masks" / f"{units[0].id}.png").unlink()
    cv2.imwrite(str(tmp_path / "masks" / f"{units[1].id}.png"), np.zeros((3, 4), np.uint8))
    again = one_shot_run(tmp_path / "second", whole.data, max_failures=1.0, **given)
    failures = pl.read_parquet(RunFolder(tmp_path / "second").failures_path)
    assert set(failures["unit"]) == {units[0].id, units[1].id}
    assert again.scored.scorecard.units.failed == 2
    assert sum("no stored prediction" in text for text in failures["error"]) == 1


def test_a_stored_map_of_scores_or_labels_is_no_mask(whole, tmp_path):
    units = [
        unit for batch in InMemoryRun("toss", {"data": whole.data, "fixed": True}).prepared for unit in batch.units
    ]
    (tmp_path / "masks").mkdir()
    for unit in units:
        cv2.imwrite(str(tmp_path / "masks" / f"{unit.id}.png"), unit.payload.truth.mask.astype(np.uint8))
    soft = units[0].payload.truth.mask.astype(np.uint8) * 200
    soft[0, 0], soft[-1, -1] = 3, 200
    cv2.imwrite(str(tmp_path / "masks" / f"{units[0].id}.png"), soft)
    given = {"fixed": True, "pred": tmp_path / "masks", "model": None, "max_failures": 1.0}
    one_shot_run(tmp_path / "run", whole.data, **given)
    [failure] = pl.read_parquet(RunFolder(tmp_path / "run").failures_path).to_dicts()
    assert failure["unit"] == units[0].id
    assert "the stored mask holds 3 and 200 beside 0" in failure["error"]
    assert f"{units[0].id}.png" in failure["error"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("WrongShape", r"mask: expected shape \(H, W\) = \(120, 160\), got \(119, 160\)"),
        ("WrongType", "mask: expected bool, got float32"),
        ("NoArray", "mask: expected a numpy array, got str"),
        ("TooFew", "expected 1 answers for 1 pairs, got 0"),
    ],
)
def test_an_answer_that_does_not_fit_fails_its_unit_by_name(whole, tmp_path, model, words):
    with pytest.raises(RunError, match=f"ModelError: the one-shot-segmenter .*{model}: {words}") as caught:
        one_shot_run(tmp_path / "run", whole.data, model=f"troubled_one_shot:{model}", fixed=True)
    assert "fixed-fold0-" in str(caught.value)


def test_a_model_that_breaks_on_one_picture_loses_its_pairs_only(whole, tmp_path):
    done = one_shot_run(
        tmp_path / "run",
        whole.data,
        model="troubled_one_shot:ShyOfScene",
        args={"scene": int(whole.some_query[-6:]) - 1},
        fixed=True,
        max_failures=1.0,
    )
    rows = [row for fold in (0, 1) for row in whole.listed(FIXED / f"split{fold}_test.txt")]
    lost = sum(query.endswith(whole.some_query) for query, _ in rows)
    assert done.scored.scorecard.units.failed == lost > 0
    assert len(whole_records(tmp_path / "run")) == len(rows) - lost


def test_records_count_pixels_and_keep_the_prediction():
    source = PlantedScenes(PlantedWorld(count=24))
    cats = [token for token in source.tokens() if token.startswith("1_")]
    pair = OneShotPair(PairSettings(source, "world", "planted world"), cats[0], (cats[1],), {"class": "cat"})
    seen = read_pair(pair, "a", ArrayCache())
    [column] = [column for column in SLICES if column.name == "class"]
    rng = np.random.default_rng(0)
    mask = rng.random(seen.truth.mask.shape) < 0.3
    record = make_record(Unit("a", seen), mask, [column])
    true, void = seen.truth.mask, seen.truth.void
    assert record["intersection"] == int(np.logical_and(mask, true).sum())
    assert (record["predicted"], record["truth"], record["void"]) == (mask.sum(), true.sum(), void.sum())
    assert record["predicted_void"] == int(np.logical_and(mask, void).sum())
    assert record["pixels"] == 120 * 160
    assert (decode_prediction(record["prediction"], mask.shape) == mask).all()
    unkept = replace(seen, settings=replace(seen.settings, keep_prediction=False))
    assert make_record(Unit("a", unkept), mask, [column])["prediction"] == ""


@pytest.mark.parametrize("fold", [0, 1])
def test_what_a_model_may_know_of_a_pair_does_not_depend_on_the_other_tiers(fold):
    known = []
    for tiers in ("3", "2,3"):
        run = InMemoryRun("toss", {"scenes": 24, "resamples": 0, "folds": str(fold), "tiers": tiers})
        units = (unit for batch in run.prepared for unit in batch.units)
        known.append({unit.id: make_context(unit.payload) for unit in units if unit.payload.slices["tier"] == 3})
    assert known[0] == known[1] and all(context.training_classes for context in known[0].values())


def test_models_may_know_fold_class_and_training_classes():
    run = InMemoryRun("toss", {"scenes": 24, "resamples": 0, "folds": "1"})
    run.records("troubled_one_shot:Listens")
    concepts = PlantedScenes(PlantedWorld(count=24)).classes
    seen = set()
    for unit in (unit for batch in run.prepared for unit in batch.units):
        pair, level = unit.payload, unit.payload.slices["split"]
        context = make_context(pair)
        shown = pair.support[0]
        assert Listens.heard[pair.image.tobytes(), shown.image.tobytes(), bool(shown.mask.any())].fold == 1
        assert context.fold == 1
        assert context.training_classes == concepts[:4]
        if level in ("L5", "L6"):
            assert (context.class_id, context.class_name) == (None, None)
        else:
            number = int(pair.supports[0].partition("_")[0])
            assert (context.class_id, context.class_name) == (number, concepts[number - 1])
        # In L4 the support shows another class than the query, and that is the class asked for.
        assert (context.class_name == pair.slices["class"]) == (level not in ("L4", "L5", "L6"))
        seen.add(level)
    assert {"L0", "L4", "L5", "L6", ""} <= seen


def test_a_run_without_folds_of_its_model_says_so_in_tier_3():
    run = InMemoryRun("toss", {"scenes": 24, "resamples": 0, "tiers": "3"})
    assert {make_context(unit.payload).fold for batch in run.prepared for unit in batch.units} == {None}


def test_torch_does_not_warn_about_read_only_arrays():
    torch = pytest.importorskip("torch")
    run = InMemoryRun("toss", {"scenes": 24, "resamples": 0, "tiers": "3"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.records("troubled_one_shot:ReadsTensors")
        torch.set_warn_always(False)
    assert [str(one.message) for one in caught if "not writable" in str(one.message)] == []
