from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hardlook.data.concept_context import read_rows
from hardlook.errors import DataError
from hardlook.world.planted import PlantedWorld
from hardlook.world.write import write_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("world"), "concept-context", seed=2, count=24)


def test_round_trip_of_the_planted_world(folder: Path) -> None:
    world = PlantedWorld(seed=2, count=24, salient=True)
    rows = {int(row.path.stem): row for row in read_rows(folder)}
    assert len(rows) == 24
    for index, rendered in enumerate(world):
        row = rows[index + 1]
        assert (row.concept, row.context) == (rendered.scene.subject.concept, rendered.scene.context)
        assert row.name == f"{row.split}/{row.concept}/{row.context}/{row.path.name}"
        assert np.array_equal(row.read(), rendered.image)
    splits = {row.concept: row.split for row in rows.values()}
    assert Counter(splits.values()) == {"test": 6, "train": 4, "val": 2}


def test_manifest_and_folders_agree(folder: Path, tmp_path: Path) -> None:
    rows = read_rows(folder)
    table = pl.read_csv(folder / "manifest.csv")
    (folder / "manifest.csv").rename(tmp_path / "manifest.csv")
    try:
        assert read_rows(folder) == rows
        table.write_parquet(folder / "table.parquet")
        assert read_rows(folder / "table.parquet") == rows
    finally:
        (tmp_path / "manifest.csv").rename(folder / "manifest.csv")
    kept = read_rows(folder, split="val")
    assert kept == tuple(row for row in rows if row.split == "val")
    with pytest.raises(DataError, match="no image of split 'dev'") as caught:
        read_rows(folder, split="dev")
    assert "test, train, val" in str(caught.value.remedy)


def test_names_that_look_like_numbers_stay_text(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("path,concept,context\na.png,007,NA\n")
    row = read_rows(tmp_path / "m.csv")[0]
    assert (row.concept, row.context, row.split, row.path) == ("007", "NA", None, tmp_path / "a.png")


def test_bad_manifests_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "columns.csv").write_text("file,concept\na,b\n")
    (tmp_path / "blank.csv").write_text("path,concept,context\na.png,cat,\n")
    (tmp_path / "none.csv").write_text("path,concept,context\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "rows.txt").write_text("a")
    for name, words in (
        ("columns.csv", "no column context, path"), ("blank.csv", "no context given"), ("none.csv", "no image here"),
        ("empty.csv", "cannot be read"), ("rows.txt", "type '.txt'"), ("absent", "no such folder"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words) as caught:
            read_rows(tmp_path / name)
        assert name in str(caught.value)
    mixed = tmp_path / "mixed"
    for place in ("cat/snow/a.jpg", "train/cat/snow/b.jpg"):
        (mixed / place).parent.mkdir(parents=True)
        (mixed / place).write_bytes(b"")
    with pytest.raises(DataError, match=r"depths: cat/snow/a.jpg, train/cat/snow/b.jpg"):
        read_rows(mixed)


@pytest.mark.real
def test_pacs(shared_data: Path) -> None:
    rows = read_rows(shared_data / "data" / "pacs")
    cells = Counter((row.concept, row.context) for row in rows)
    assert len(rows) == 7 * 4 * 40
    assert len(cells) == 28
    assert set(cells.values()) == {40}
    assert rows[0].read().ndim == 3
