"""A study of twelve coloured classes at 32 pixels, prepared once."""

import cv2
import numpy as np
import pytest

SHAPE = {"ways": 2, "shots": 1, "queries": 2}


@pytest.fixture(autouse=True)
def always_on_one_thread(one_thread):
    """Every test of this folder."""


@pytest.fixture(scope="session")
def class_folders(tmp_path_factory):
    """Twelve classes of ten noisy images, each class of a colour of its own."""
    root = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    for number in range(12):
        folder = root / ("Faces" if number == 0 else "Faces_easy" if number == 1 else f"class-{number:02d}")
        folder.mkdir()
        colour = rng.integers(40, 216, 3)
        for image in range(10):
            pixels = np.clip(colour + rng.integers(-40, 41, (40, 44, 3)), 0, 255).astype(np.uint8)
            cv2.imwrite(str(folder / f"{image}.png"), pixels)
    return root


@pytest.fixture(scope="session")
def study(class_folders, tmp_path_factory):
    """The folder of a prepared study, with two correlations, two seeds and five tasks per mode."""
    from zoo.preparation import Plan, prepare

    plan = Plan(
        class_folders,
        None,
        seeds=(0, 1),
        image_size=32,
        tasks=5,
        validation_tasks=3,
        budget=120,
        planting_seed=3,
        excluded=("class-05",),
        **SHAPE,
    )
    out = tmp_path_factory.mktemp("study")
    prepare(plan, out, part_bytes=60_000, progress=False)
    return out
