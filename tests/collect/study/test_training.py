"""The training round: clear objects, alike in every study."""

import numpy as np
import pytest

from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.settings import DISPLAY_MODES, StudySettings
from hardlook.collect.study.training import WORLD, training_tasks


def settings(count, *modes):
    return StudySettings(kind="clicks", title="Things", modes=modes or ("cut-out",), training_tasks=count)


def test_clear_objects_of_different_concepts_in_all_modes(tmp_path):
    tasks = training_tasks(tmp_path, settings(4, *DISPLAY_MODES))
    assert [task.id for task in tasks] == [f"training-{i}" for i in range(4)]
    assert len({task.description for task in tasks}) == len({task.subject for task in tasks}) == 4
    for task in tasks:
        scene = WORLD.scene(int(task.image_stem) - 1)
        assert [thing.concept for thing in scene.objects].count(task.description) == 1
        mask = read_mask(tmp_path / task.mask, (task.width, task.height))
        assert 0.04 <= mask.mean() <= 0.3
        frame = np.ones_like(mask)
        frame[1:-1, 1:-1] = False
        assert not (mask & frame).any()
        assert set(task.targets) == set(DISPLAY_MODES) - {"text"} and task.training


@pytest.mark.parametrize("kinds", [("first",), ("fn", "fp")])
def test_the_same_round_every_time_with_the_kinds_in_turns(tmp_path, kinds):
    once, again = (training_tasks(tmp_path / name, settings(3), kinds) for name in "ab")
    assert once == again
    assert [task.click_type for task in once] == [kinds[i % len(kinds)] for i in range(3)]
    assert training_tasks(tmp_path, settings(0), kinds) == ()
