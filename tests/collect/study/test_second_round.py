"""The errors of a second round: the best prediction within the limit, replayed, and its regions."""

import json

import cv2
import numpy as np
import polars as pl
import pytest
from command_line import CommandLine
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import distance_transform_edt

from hardlook.collect.study.clicks import make_region_study
from hardlook.collect.study.folder import open_study
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.second_round import ErrorRegions, Prediction, sort_best_first
from hardlook.collect.study.settings import StudySettings
from hardlook.data.click_names import parse_full_stem
from hardlook.data.object_instances import list_instances
from hardlook.data.previous_masks import PreviousMasks
from hardlook.errors import DataError, OptionError, RunError
from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.runs.launch import launch
from hardlook.world.layouts import write_isegm
from hardlook.world.planted import PlantedWorld

SCENES = 4


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    write_isegm(PlantedWorld(seed=3, count=SCENES), folder, "png")
    return folder


def run(folder, world, **model_args):
    given = {"data": {"planted": str(world)}, "rounds": 3, "groups": 3, "resamples": 0, "seed": 3}
    launch("rclicks", model="disc", model_args=model_args, given=given, out=folder)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory, world):
    folder = tmp_path_factory.mktemp("runs")
    return run(folder / "fragile", world, fragility=1.0), run(folder / "blunt", world, fragility=0.6, blunt=1.0)


@pytest.fixture(scope="module")
def instances(world):
    return list_instances({"planted": world}).instances


def recorded(folder):
    """IoUs of a run by unit: (course, round, clicked, IoU), read from its files and nothing else."""
    frame = pl.concat([pl.read_parquet(part) for part in sorted((folder / "records").glob("*.parquet"))])
    found = {}
    for row in frame.iter_rows(named=True):
        rounds = row["rounds"]
        for place, (x, inter, union) in enumerate(zip(row["x"], row["intersection"], row["union"], strict=True)):
            found.setdefault(row["unit"], []).append((place // rounds, place % rounds + 1, x >= 0, inter / union))
    return found


def iou(mask, target):
    counted = ~target.ignore
    return (mask & target.mask & counted).sum() / ((mask | target.mask) & counted).sum()


def radius(region):
    return distance_transform_edt(np.pad(region, 1)).max()


@pytest.mark.parametrize("limit", [0.95, 0.8, 0.5])
def test_no_better_prediction_within_the_limit_is_passed_over(runs, instances, limit):
    made = ErrorRegions(instances, runs, limit=limit)
    regions = {region.image_stem: region for region in made}
    tables = [recorded(folder) for folder in runs]
    for one in instances:
        unit = f"planted/{one.full_stem}"
        within = [value for table in tables for *_, clicked, value in table[unit] if clicked and value <= limit]
        assert (one.image_stem in regions) == bool(within)
        if within:
            assert iou(regions[one.image_stem].previous, one.read_target()) == max(within)
    assert made.facts["replays_that_differ"]["count"] == 0
    assert sum(note["count"] for note in made.facts["left_out"]) == len(instances) - len(regions)
    assert regions or made.facts["left_out"]


def test_a_replayed_mask_is_the_recorded_one(runs, instances):
    for region in ErrorRegions(instances, runs[:1], limit=0.9):
        parts = parse_full_stem(region.full_stem)
        target = next(one for one in instances if one.image_stem == parts.image).read_target()
        values = [v for _, number, _, v in recorded(runs[0])[region.unit.split("_")[0]] if number == parts.number]
        assert iou(region.previous, target) in values
        assert (parts.method, parts.device, region.model_type) == ("disc", "pc", "disc")


def test_the_region_is_the_whole_error_with_the_larger_inscribed_circle(runs, instances):
    made = list(ErrorRegions(instances, runs, limit=0.9))
    assert made
    for region in made:
        one = next(one for one in instances if one.image_stem == region.image_stem)
        target = one.read_target()
        missing = target.mask & ~region.previous & ~target.ignore
        surplus = region.previous & ~target.mask & ~target.ignore
        assert np.array_equal(region.region, missing if region.click_type == "fn" else surplus)
        assert region.click_type == ("fn" if radius(missing) > radius(surplus) else "fp")
        assert region.subject == one.image_key
        assert np.array_equal(region.image, one.read())


def write_masks(folder, instances, make):
    for one in instances:
        target = one.read_target()
        path = folder / f"{one.full_stem}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), make(target).astype(np.uint8) * 255)


def test_both_errors_and_stored_masks_of_several_methods(tmp_path, instances):
    def shifted(by):
        return lambda target: np.roll(target.mask, by, axis=1) | target.ignore

    write_masks(tmp_path / "near_by", instances, shifted(6))
    write_masks(tmp_path / "far", instances, shifted(30))
    write_masks(tmp_path / "right", instances[1:], lambda target: target.mask)
    made = ErrorRegions(instances, [tmp_path], errors="both")
    regions = list(made)
    assert {region.model_type for region in regions} == {"near-by"}
    assert [region.click_type for region in regions] == ["fn", "fp"] * len(instances)
    assert regions[0].full_stem == f"{instances[0].image_stem}_near-by_fn_pc_0"
    assert made.facts["chosen"] == {"near-by": len(instances)}
    assert {region.model_type for region in ErrorRegions(instances, [tmp_path / "far"])} == {"far"}
    for fn, fp in zip(regions[::2], regions[1::2], strict=True):
        assert not (fn.region & fp.region).any()


def test_what_is_written_gives_the_same_errors_to_those_who_read_it(tmp_path, runs, instances):
    regions = list(ErrorRegions(instances, runs, limit=0.9, errors="both"))
    for region in regions:
        path = tmp_path / region.dataset / f"{region.full_stem}.png"
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), region.previous.astype(np.uint8) * 255)
    masks = PreviousMasks(tmp_path)
    for region in regions:
        again = masks.error(region.full_stem, region.target, region.click_type, region.dataset)
        assert np.array_equal(again, region.region)


def test_instances_of_no_run_and_perfect_ones_are_counted(tmp_path, instances):
    write_masks(tmp_path, instances[:1], lambda target: target.mask)
    made = ErrorRegions(instances, [tmp_path], limit=1.0)
    assert list(made) == []
    notes = {note["why"]: (note["count"], note["examples"]) for note in made.facts["left_out"]}
    assert notes["no method predicted them"][0] == len(instances) - 1
    assert [count for why, (count, _) in notes.items() if why.startswith("the best prediction has no")] == [1]


def test_a_model_that_answers_otherwise_is_counted_and_never_breaks_the_limit(tmp_path, world, instances):
    folder = run(tmp_path / "run", world, fragility=1.0)
    manifest = parse_checked_json((folder / "run.json").read_text())
    manifest["model"]["args"]["fragility"] = 0.3
    (folder / "run.json").write_text(json.dumps(manifest))
    made = ErrorRegions(instances, [folder], limit=0.8)
    targets = {one.image_stem: one.read_target() for one in instances}
    for region in made:
        assert iou(region.previous, targets[region.image_stem]) <= 0.8
    differing = made.facts["replays_that_differ"]
    assert differing["count"] >= len(differing["examples"]) > 0
    assert "disc after" in differing["examples"][0]


def test_a_second_round_is_a_study_whose_masks_are_read_by_others(tmp_path, runs, instances):
    settings = StudySettings(kind="clicks", title="Errors", modes=("cut-out",), training_tasks=0)
    regions = ErrorRegions(instances, runs, limit=0.9, errors="both")
    study = make_region_study(tmp_path / "study", regions, settings, facts=lambda: regions.facts)
    again = open_study(study.path)
    assert again.made["round"] == 2 and again.made["replays_that_differ"]["count"] == 0
    targets = {one.full_stem: one.read_target().mask for one in instances}
    masks = PreviousMasks(study.path / "previous-masks")
    assert len(again.tasks) == sum(again.made["click_types"].values()) > 0
    for task in again.tasks:
        error = masks.error(task.full_stem, targets[task.image_stem], task.click_type, task.dataset)
        assert np.array_equal(error, read_mask(study.file(task.mask)))
        assert parse_full_stem(task.full_stem, task.click_type).method == task.model_type == "disc"


def test_the_planted_world_is_clicked_without_any_file(tmp_path, capsys, monkeypatch):
    given = {"scenes": 2, "rounds": 2, "groups": 2, "resamples": 0, "seed": 3}
    launch("rclicks", model="disc", model_args={"fragility": 1.0}, given=given, out=tmp_path / "run")
    words = ["--scenes", 2, "--seed", 3, "--round", 2, "--masks", tmp_path / "run", "--json", "-q"]
    answer = CommandLine(capsys, monkeypatch)("collect", "init", "clicks", tmp_path / "study", *words)
    document = json.loads(answer.out)
    study = open_study(tmp_path / "study")
    assert (document["round"], document["tasks"]) == (2, len(study.items)) and document["tasks"] > 0
    assert study.made["replays_that_differ"]["count"] == 0
    for item in study.items:
        assert study.by_id[item.task].click_type in ("fn", "fp")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(10, 12), st.integers(1, 4)), max_size=12))
def test_predictions_come_best_first(numbers):
    known = [(None, Prediction(*each)) for each in numbers]
    ranked = [one for _, one in sort_best_first(known)]
    keys = [(-one.intersection / one.union, one.number) for one in ranked]
    assert keys == sorted(keys) and len(ranked) == len(numbers)


def test_bad_sources_are_refused(tmp_path, runs, instances, world):
    with pytest.raises(OptionError, match="without masks"):
        ErrorRegions(instances, [])
    with pytest.raises(OptionError, match=r"limit of 1\.5"):
        ErrorRegions(instances, runs, limit=1.5)
    with pytest.raises(DataError, match="no such folder"):
        ErrorRegions(instances, [tmp_path / "nowhere"])
    with pytest.raises(DataError, match="no mask here"):
        ErrorRegions(instances, [tmp_path])
    with pytest.raises(DataError, match="a folder of runs"):
        ErrorRegions(instances, [runs[0].parent])
    other = launch(
        "closed-miou", model="planted-segmenter", given={"scenes": 4, "resamples": 0}, out=tmp_path / "other"
    )
    with pytest.raises(RunError, match="a run of closed-miou"):
        ErrorRegions(instances, [tmp_path / "other"])
    assert other.scored is not None
    unfinished = run(tmp_path / "unfinished", world)
    (unfinished / "scores.json").unlink()
    with pytest.raises(RunError, match="not finished"):
        ErrorRegions(instances, [unfinished])


def test_a_run_on_images_of_another_size_is_refused(tmp_path, runs):
    write_isegm(PlantedWorld(seed=3, count=2, size=(96, 72)), tmp_path, "png")
    with pytest.raises(DataError, match="the run saw"):
        list(ErrorRegions(list_instances({"planted": tmp_path}).instances, runs))


@pytest.mark.real
def test_a_real_method_on_real_photographs(shared_data, tmp_path):
    data = {"grabcut": shared_data / "data" / "GrabCut"}
    given = {"data": {"grabcut": str(data["grabcut"])}, "at_most": 2, "rounds": 2, "groups": 2, "resamples": 0}
    launch("rclicks", model="grabcut", given=given, out=tmp_path / "run")
    instances = list_instances(data, at_most=2).instances
    made = ErrorRegions(instances, [tmp_path / "run"])
    regions = list(made)
    assert made.facts["replays_that_differ"]["count"] == 0
    table = recorded(tmp_path / "run")
    for region in regions:
        one = next(one for one in instances if one.image_stem == region.image_stem)
        within = [v for *_, clicked, v in table[f"grabcut/{one.full_stem}"] if clicked and v <= 0.95]
        assert iou(region.previous, one.read_target()) == max(within)
    assert regions
    assert len(regions) + sum(note["count"] for note in made.facts["left_out"]) == len(instances)
