from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hardlook.data.class_masks import open_fss
from hardlook.errors import DataError
from hardlook.world import signature
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import CONCEPTS
from hardlook.world.write import write_world

COUNT, SMALL = 24, (96, 72)


def test_every_scene_lies_under_its_concept_with_its_signature(tmp_path: Path) -> None:
    source = open_fss(write_world(tmp_path, "fss", seed=4, count=COUNT, size=SMALL))
    assert source.classes == tuple(sorted(label.name for label in CONCEPTS))
    world = PlantedWorld(seed=4, count=COUNT, size=SMALL)
    numbers: Counter[str] = Counter()
    for index, rendered in enumerate(world):
        concept = world.concept(index)
        numbers[concept] += 1
        token = f"0_{concept}_{numbers[concept]}"
        assert np.array_equal(source.read_image(token), rendered.image)
        assert np.array_equal(source.read_mask(token).mask, rendered.class_mask(concept))
        assert np.array_equal(signature.read(source.read_image(token)).classes, rendered.classes)
    assert set(numbers.values()) == {COUNT // len(CONCEPTS)}
    assert len(source.tokens()) == COUNT


def test_jpeg_is_for_looks_and_masks_are_black_and_white(tmp_path: Path) -> None:
    write_world(tmp_path, "fss", count=12, size=SMALL, image_format="jpg")
    assert {path.suffix for path in (tmp_path / "cat").iterdir()} == {".jpg", ".png"}
    assert set(np.unique(np.asarray(PIL.Image.open(tmp_path / "cat" / "1.png")))) == {0, 255}
    with pytest.raises(DataError):
        signature.read(open_fss(tmp_path).read_image("0_cat_1"))


def test_ten_images_a_concept_from_120_scenes() -> None:
    world = PlantedWorld(count=120)
    assert set(Counter(world.concept(index) for index in range(120)).values()) == {10}
