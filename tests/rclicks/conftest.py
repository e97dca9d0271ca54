"""A small world in GrabCut's layout, and files of clicks that simulated visitors left on it."""

import csv
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hardlook.world.layouts import write_world

COLUMNS = "dataset image_stem object_stem model_type click_type full_stem device x y w h".split()

SIZE = (96, 72)

SCENES = 5

PER_DEVICE = 12


@dataclass(frozen=True)
class ClickedWorld:
    folder: Path
    masks: dict
    clicks: Path
    previews: Path
    previous: Path


def rows_on(region, rng, device, count=PER_DEVICE, **names):
    """Rows of `count` uniform clicks on a region."""
    ys, xs = np.nonzero(region)
    row = {"object_stem": "", "model_type": "", "click_type": "first", "device": device, "w": SIZE[0], "h": SIZE[1]}
    return [{**row, **names, "x": xs[i], "y": ys[i]} for i in rng.integers(len(xs), size=count)]


def write_rows(path, rows):
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def clicked(tmp_path_factory):
    """Five scenes: first clicks on all, one later round with its mask and one without, previews in two modes."""
    where = tmp_path_factory.mktemp("clicked")
    write_world(where / "world", layout="isegm", seed=3, count=SCENES, size=SIZE)
    masks = {path.stem: np.array(Image.open(path)) > 128 for path in sorted((where / "world/boundary_GT").iterdir())}
    rng = np.random.default_rng(0)
    rows, previews = [], []
    for stem, mask in masks.items():
        for device in ("pc", "mobile"):
            rows += rows_on(mask, rng, device, dataset="GrabCut", image_stem=stem, full_stem=stem)
        for mode in ("Text Description", "Object CutOut"):
            previews += rows_on(mask, rng, "pc", dataset=mode, image_stem=stem, full_stem=stem)
    half = masks["000001"].copy()
    half[:, : int(np.nonzero(half)[1].mean())] = False
    (where / "previous").mkdir()
    Image.fromarray(half.astype(np.uint8) * 255).save(where / "previous/000001_ritm_fn_pc_1.png")
    later = {"dataset": "GrabCut", "click_type": "fn", "model_type": "ritm"}
    for stem in ("000001", "000002"):
        region = masks[stem] & ~half if stem == "000001" else masks[stem]
        rows += rows_on(region, rng, "pc", image_stem=stem, full_stem=f"{stem}_ritm_fn_pc_1", **later)
    rows += rows_on(mask, rng, "pc", dataset="GrabCut", image_stem="nowhere", full_stem="nowhere")
    rows += rows_on(mask, rng, "pc", dataset="DAVIS", image_stem="000001", full_stem="000001")
    write_rows(where / "clicks.csv", rows)
    write_rows(where / "previews.csv", previews)
    return ClickedWorld(where / "world", masks, where / "clicks.csv", where / "previews.csv", where / "previous")


@pytest.fixture
def broken(tmp_path, clicked):
    """The same world with a mask of 000003 that has another size than its image."""
    folder = tmp_path / "broken"
    shutil.copytree(clicked.folder, folder)
    [mask] = (folder / "boundary_GT").glob("000003*")
    Image.fromarray(np.full((9, 9), 255, np.uint8)).save(mask)
    return folder


@pytest.fixture
def turned(tmp_path, clicked):
    """The clicks, with width and height of 000002 the wrong way round."""
    with clicked.clicks.open() as stream:
        rows = list(csv.DictReader(stream))
    sides = {"w": SIZE[1], "h": SIZE[0]}
    write_rows(tmp_path / "turned.csv", [row | sides if row["image_stem"] == "000002" else row for row in rows])
    return tmp_path / "turned.csv"
