"""Models that are trained per fold, in one command: the same as one run per fold and then joining them."""

from __future__ import annotations

import json

import numpy as np
import one_shot_oracle as oracle
import polars as pl
import pytest
from command_line import CommandLine
from fold_models import write_weights
from one_shot_folders import write_one_shot_folder
from small_runs import all_records
from split_runs import scores_without_checksum

from hardlook.errors import ChangedRun, OptionError
from hardlook.harness.joined_runs.fold_models import fill_fold, has_fold, launch_folds
from hardlook.harness.joined_runs.joining import join_runs
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.harness.runs.rerun_command import build_rerun_command
from hardlook.harness.runs.scoring import score_run

GIVEN = {"scenes": 24, "resamples": 0, "tiers": "1,3"}
MODEL = "fold_models:FoldNet"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of a run with a model per fold, and the path of its weights."""
    folder = tmp_path_factory.mktemp("folds")
    weights = write_weights(folder / "weights")
    launch_folds("toss", out=folder / "net", model=MODEL, model_args={"weights": weights}, given=GIVEN)
    return folder / "net", weights


def test_each_fold_is_answered_by_its_own_model(done, tmp_path):
    out, weights = done
    for fold in (0, 1):
        own = {"weights": fill_fold({"weights": weights}, fold)["weights"]}
        launch("toss", out=tmp_path / f"{fold}", model=MODEL, model_args=own, given={**GIVEN, "folds": str(fold)})
    joined = join_runs([tmp_path / "0", tmp_path / "1"], tmp_path / "joined")
    assert all_records(out).drop("answers").equals(all_records(tmp_path / "joined").drop("answers"))
    assert scores_without_checksum(out) == scores_without_checksum(tmp_path / "joined")
    assert joined.manifest["model"]["args"]["weights"] == weights
    assert set(joined.manifest["model"]["weights"]) == {"fold0.pth", "fold1.pth"}
    answered = all_records(out)
    assert set(answered.filter(pl.col("tier") == 3)["fold"]) == {0, 1}


def test_runs_of_further_folds_are_joined_to_a_joined_run(tmp_path):
    """Each fold has its own weights: what was joined first must not matter."""
    weights = write_weights(tmp_path / "weights", folds=(0, 1, 2))
    data = write_one_shot_folder(tmp_path / "data", scenes=32).data
    folders = [tmp_path / f"fold{fold}" for fold in range(3)]
    for fold, folder in enumerate(folders):
        own = {"weights": fill_fold({"weights": weights}, fold)["weights"]}
        given = {"data": {"voc": data["voc"]}, "folds": str(fold), "pairs_a_class": 2, "resamples": 0}
        launch("bias-support", out=folder, model=MODEL, model_args=own, given=given)
    join_runs(folders[:2], tmp_path / "first")
    later = join_runs([tmp_path / "first", folders[2]], tmp_path / "later")
    earlier = join_runs([folders[2], tmp_path / "first"], tmp_path / "earlier")
    at_once = join_runs(folders, tmp_path / "at-once")
    assert later.manifest["model"]["args"]["weights"] == earlier.manifest["model"]["args"]["weights"] == weights
    assert later.manifest["model"] == at_once.manifest["model"]
    assert set(earlier.manifest["model"]["weights"]) == {"fold0.pth", "fold1.pth", "fold2.pth"}
    assert scores_without_checksum(tmp_path / "later") == scores_without_checksum(tmp_path / "at-once")


def test_the_scores_are_means_over_folds_as_in_the_papers_tables(done):
    scored = score_run(RunFolder(done[0]))
    rows = scored.records.to_dicts()
    folds = [[row for row in rows if row["fold"] == fold and row["tier"] == 3] for fold in (0, 1)]
    assert scored.scorecard.get("gs").value == pytest.approx(np.mean([oracle.miou(own, "ignored") for own in folds]))
    by_fold = [scored.scorecard.get("lca", fold=str(fold)).value for fold in (0, 1)]
    assert scored.scorecard.get("lca").value == pytest.approx(np.nanmean(by_fold))


def test_a_run_of_all_folds_by_one_model_has_the_same_units(done, tmp_path):
    one = launch("toss", out=tmp_path / "one", model="empty", given={**GIVEN, "per_fold": True}).scored
    many = score_run(RunFolder(done[0]))
    assert one.records["unit"].equals(many.records["unit"])
    for name in ("units", "option folds", "option tiers", "option per_fold"):
        assert one.manifest["answers"]["parts"][name] == many.manifest["answers"]["parts"][name]


def test_the_command_runs_resumes_and_shows_single_units(done, tmp_path, capsys, monkeypatch):
    out, weights = done
    hardlook = CommandLine(capsys, monkeypatch)
    words = ["--model", MODEL, "--model-arg", f"weights={weights}", "--scenes", "24", "--tiers", "1,3"]
    before = (out / "scores.json").read_bytes()
    again = hardlook("run", "toss", *words, "--resamples", "0", "--out", out, "--json", "--quiet")
    assert (again.code, (out / "scores.json").read_bytes()) == (0, before)
    assert json.loads(again.out)["scores"]
    row = all_records(out).filter(pl.col("tier") == 3).row(-1, named=True)
    shown = hardlook("run", "toss", *words, "--unit", row["unit"], "--json", "--quiet")
    [answer] = json.loads(shown.out)["answers"]
    assert row["fold"] == 1
    assert {name: answer["record"][name] for name in ("intersection", "predicted", "truth")} == {
        name: row[name] for name in ("intersection", "predicted", "truth")
    }
    command = build_rerun_command(RunFolder(out).read_manifest(), unit=row["unit"])
    assert f"--model-arg 'weights={weights}'" in command and "--per-fold" in command


def test_stored_masks_of_four_models_are_scored_together(done, tmp_path):
    """What `--pred` needs: one mask per unit, tier 3's once for each model."""
    from PIL import Image

    from hardlook.toss.evaluation import decode_prediction

    for row in all_records(done[0]).iter_rows(named=True):
        mask = decode_prediction(row["prediction"], (120, 160))
        Image.fromarray(mask.astype(np.uint8) * 255).save(tmp_path / f"{row['unit']}.png")
    stored = launch("toss", out=tmp_path / "run", given={**GIVEN, "pred": tmp_path}).scored
    model = score_run(RunFolder(done[0]))
    assert [(score.name, score.slice, score.n) for score in stored.scorecard.scores] == [
        (score.name, score.slice, score.n) for score in model.scorecard.scores
    ]
    np.testing.assert_array_equal(
        [score.value for score in stored.scorecard.scores], [score.value for score in model.scorecard.scores]
    )
    assert set(stored.records.filter(pl.col("tier") == 3)["fold"]) == {0, 1}


def test_a_study_has_models_per_fold_too(tmp_path):
    weights = write_weights(tmp_path / "weights")
    given = {"scenes": 24, "resamples": 0, "pairs_a_class": 2}
    scored = launch_folds(
        "bias-support", out=tmp_path / "run", model=MODEL, model_args={"weights": weights}, given=given
    ).scored
    assert set(scored.records["fold"]) == {0, 1}
    assert scored.manifest["model"]["args"]["weights"] == weights


def test_one_fold_needs_no_join(tmp_path):
    args = {"weights": write_weights(tmp_path / "weights")}
    given = {**GIVEN, "tiers": "3", "folds": "1"}
    scored = launch_folds("toss", out=tmp_path / "run", model=MODEL, model_args=args, given=given).scored
    assert "joined" not in scored.manifest and scored.manifest["model"]["weights"].keys() == {"fold1.pth"}


def test_a_file_that_one_fold_lacks_is_named_before_the_first_fold_runs(tmp_path):
    args = {"weights": write_weights(tmp_path / "weights", folds=(0,))}
    with pytest.raises(OptionError, match=r"there is no \S*fold1\.pth\n") as caught:
        launch_folds("toss", out=tmp_path / "run", model=MODEL, model_args=args, given=GIVEN)
    assert "--folds" in str(caught.value.remedy) and not (tmp_path / "run").exists()


def test_what_cannot_run_per_fold_says_so(done, tmp_path):
    assert has_fold({"weights": "a{fold}b"}) and not has_fold({"weights": "ab", "size": 3})
    with pytest.raises(OptionError, match=r"--model-arg seed={fold}: closed-miou has no folds"):
        launch_folds("closed-miou", out=tmp_path / "run", model="planted-segmenter", model_args={"seed": "{fold}"})
    launch("toss", out=tmp_path / "taken", model="empty", given={**GIVEN, "tiers": "3"})
    given = {**GIVEN, "tiers": "3"}
    more = {"out": tmp_path / "taken", "model": MODEL, "model_args": {"weights": done[1]}, "given": given}
    with pytest.raises(ChangedRun, match="the folder holds a run"):
        launch_folds("toss", **more)
    with pytest.raises(OptionError, match="--new with --shard"):
        launch_folds("toss", **more, settings=RunSettings(new=True, shard=(1, 2)))
    launch_folds("toss", **more, settings=RunSettings(new=True))
    assert (tmp_path / "taken.old-1" / "run.json").is_file()
