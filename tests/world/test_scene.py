from __future__ import annotations

from collections import Counter

import pytest

from hardlook.errors import OptionError
from hardlook.world.scene import MAX_INSTANCES, describe_scene


def test_fixing_one_choice_leaves_the_others() -> None:
    free = describe_scene(0, 12)
    fixed = describe_scene(0, 12, context="beach")
    assert fixed.context == "beach"
    assert (free.subject.concept, free.subject.salient, free.horizon) == (
        fixed.subject.concept,
        fixed.subject.salient,
        fixed.horizon,
    )


def test_seeds_and_indices_give_other_scenes() -> None:
    scenes = {describe_scene(seed, index) for seed in range(3) for index in range(10)}
    assert len(scenes) == 30


def test_distractors_are_of_other_concepts_and_instances_are_numbered() -> None:
    for index in range(40):
        scene = describe_scene(1, index, concept="cup", distractors=8)
        counts = Counter(thing.concept for thing in scene.objects)
        assert max(counts.values()) <= MAX_INSTANCES
        for name, count in counts.items():
            assert sorted(thing.instance for thing in scene.objects if thing.concept == name) == list(range(count))
        assert scene.subject.concept == "cup"
        assert scene.subject.instance == 0


def test_no_distractors_leaves_only_the_subjects_class() -> None:
    assert all(
        thing.concept == "owl" for i in range(20) for thing in describe_scene(0, i, "owl", distractors=0).objects
    )


def test_several_instances_of_one_class_occur() -> None:
    doubled = [max(Counter(t.concept for t in describe_scene(0, i).objects).values()) > 1 for i in range(60)]
    assert 0.1 < sum(doubled) / len(doubled) < 0.7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concept": "zebra"}, "no concept 'zebra'"),
        ({"context": "moon"}, "no context 'moon'"),
        ({"size": (20, 20)}, "20x20"),
        ({"distractors": -1}, "-1 distractors"),
    ],
)
def test_what_does_not_exist_is_refused_with_a_remedy(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        describe_scene(0, 0, **options)  # type: ignore[arg-type]
    assert caught.value.remedy
