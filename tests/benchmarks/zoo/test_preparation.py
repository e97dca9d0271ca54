import csv
import dataclasses

import numpy as np
import pytest

from hardlook.errors import DataError
from zoo.preparation import Plan, plant, prepare
from zoo.study import MODES, Study


def test_images_are_those_that_hardlook_train_decodes(study):
    from hardlook.metacoco.training.data import DataOptions, prepare_data
    from hardlook.training.recipes import change_recipe, find_recipe

    recipe = change_recipe(find_recipe("protonet", "conv64f", ("episodes",)), {"ways": 2, "shots": 1, "queries": 2})
    opened = Study(study)
    for correlation, seed in ((0.0, 0), (0.9, 1)):
        name = f"{correlation:g}"
        options = DataOptions(study / f"planted-{name}" / "zoo.csv", validation_tasks=3)
        data = prepare_data(options, recipe, size=32, seed=seed)
        stored = opened.read_training(correlation, seed)
        assert np.array_equal(opened.read_pixels(f"train-{name}"), data.images)
        assert np.array_equal(opened.read_pixels("val"), data.validation_images)
        assert np.array_equal(stored["train/query"], data.draw(np.arange(20)).query)
        assert np.array_equal(stored["ood/support"], data.validation["ood"].support)
        assert tuple(stored["classes"]) == data.classes


def test_correlation_moves_training_images_only(study):
    def share_in_favourite(name, split):
        with (study / f"planted-{name}" / "zoo.csv").open(newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["split"] == split]
        largest = [
            max(
                sum(row["concept"] == concept and row["context"] == context for row in rows)
                for context in ("snow", "dusk", "fog")
            )
            for concept in {row["concept"] for row in rows}
        ]
        return sum(largest) / len(rows)

    assert share_in_favourite("0.9", "train") == 0.9
    assert share_in_favourite("0", "train") == share_in_favourite("0.9", "test") == 0.4  # 4, 3 and 3 of 10


def test_excluded_classes_are_neither_trained_nor_validated_on(study):
    opened = Study(study)
    assert "class-05" not in opened.read_training(0.0, 0)["classes"]
    with (study / "planted-0" / "zoo.csv").open(newline="") as stream:
        assert {row["split"] for row in csv.DictReader(stream) if row["concept"] == "class-05"} <= {"test"}


def test_faces_in_two_splits_are_an_error(class_folders, tmp_path):
    # Seed 0 puts them apart, here.
    plan = Plan(class_folders, None, planting_seed=0)
    with pytest.raises(DataError, match="two splits"):
        plant(plan, 0.0, tmp_path, progress=False)


def test_tasks_of_all_modes_share_supports(study):
    tasks = Study(study).read_test("caltech101").tasks
    assert set(tasks) == set(MODES)
    for mode in MODES:
        assert np.array_equal(tasks[mode].support, tasks["blind"].support)
        assert np.array_equal(np.sort(tasks[mode].order), np.tile(np.arange(4), (5, 1)))


def test_a_second_test_set(class_folders, study, tmp_path):
    from zoo.preparation import describe

    plan = Plan(
        class_folders, study / "planted-0" / "test", correlations=(0.9,), seeds=(0,), image_size=32, tasks=2,
        validation_tasks=1, budget=60, planting_seed=3, ways=2, shots=1, queries=2,
    )  # fmt: skip
    card = prepare(plan, tmp_path, progress=False)
    opened = Study(tmp_path)
    assert opened.sets == ("caltech101", "pacs")
    assert np.array_equal(opened.read_test("pacs").images, opened.read_test("caltech101").images)
    assert any("pacs" in line for line in describe(card, tmp_path))
    assert dataclasses.asdict(plan)["seeds"] == (0,)
