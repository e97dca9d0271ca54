"""Pairs as files: a model that reads nothing else answers as it does in Python."""

from __future__ import annotations

import csv
import json
from functools import lru_cache

import numpy as np
import polars as pl
import pytest
from one_shot_folders import one_shot_run, whole_records, write_general_folder, write_one_shot_folder
from PIL import Image

from hardlook.errors import OptionError
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.models.planted.few_shot import PlantedOneShot
from hardlook.models.roles import Support
from hardlook.toss.pair_export import COLUMNS, export_pairs

FAULTS = {"saliency": 0.4, "support_blind": 0.5}


def write(out, benchmark="toss", **given):
    found = find_benchmark(benchmark)
    return export_pairs(found, parse_options(found.options, given), out)


def read_table(out):
    with (out / "pairs.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@lru_cache
def read_image(path):
    return np.asarray(Image.open(path))


@lru_cache
def read_mask(path):
    values = read_image(path)
    assert set(np.unique(values)) <= {0, 255}
    return values > 0


def answer_outside(out, answers, model=None):
    """What a program does that knows the folder alone, in any language."""
    answers.mkdir()
    model = model or PlantedOneShot(**FAULTS)
    for row in read_table(out):
        images = [read_image(out / name) for name in row["supports"].split()]
        masks = [read_mask(out / name) for name in row["masks"].split()]
        shown = [Support(image, mask) for image, mask in zip(images, masks, strict=True)]
        [mask] = model.segment_queries([read_image(out / row["query"])], [shown])
        Image.fromarray(mask.astype(np.uint8) * 255).save(answers / row["answer"])


@pytest.mark.parametrize(
    ("benchmark", "given"),
    [
        ("toss", {"tiers": "1,2", "folds": "0"}),
        ("toss", {"tiers": "3", "folds": "0-1", "per_fold": True, "size": "512"}),
        ("toss", {"fixed": True, "folds": "1", "shots": "1,2"}),
        ("bias-support", {"folds": "0", "pairs_a_class": 2}),
        ("bias-saliency", {"folds": "0", "pairs_a_class": 2}),
    ],
)
def test_a_model_outside_of_python_gets_the_scores_that_it_gets_inside(benchmark, given, tmp_path):
    given = {"scenes": 24, **given}
    written = write(tmp_path / "pairs", benchmark, **given)
    answer_outside(tmp_path / "pairs", tmp_path / "answers")
    stored = {"model": None, "pred": tmp_path / "answers", **given}
    inside = one_shot_run(tmp_path / "inside", benchmark=benchmark, args=FAULTS, **given).scored
    outside = one_shot_run(tmp_path / "outside", benchmark=benchmark, **stored).scored
    assert written.units == len(inside.records) and not written.failed
    assert inside.records.equals(outside.records)
    levels = {row["split"] for row in inside.records.iter_rows(named=True)} if benchmark == "toss" else set()
    assert "2" not in given.get("tiers", "") or {"L1", "L4", "L5", "L6"} <= levels


def test_files_of_a_dataset_are_written_once_and_say_what_the_model_may_know(tmp_path):
    data = write_one_shot_folder(tmp_path / "data").data
    data |= write_general_folder(tmp_path / "data", [("1_apple_1", "1_apple_2"), ("1_apple_2", "1_apple_1")])
    written = write(tmp_path / "pairs", data=data, folds="0")
    rows = read_table(tmp_path / "pairs")
    assert tuple(rows[0]) == COLUMNS
    general = [row for row in rows if row["unit"].startswith("tier3")]
    assert [row["unit"] for row in general] == ["tier3-fold0-00001", "tier3-fold0-00002"]
    assert {row["fold"] for row in rows} == {"0"}
    assert {(row["class_id"], row["class"]) for row in general} == {("", "apple")}
    assert general[0]["query"] in general[1]["supports"]
    files = {path.relative_to(tmp_path / "pairs").as_posix() for path in (tmp_path / "pairs").glob("*/*.png")}
    named = {name for row in rows for key in ("query", "supports", "masks") for name in row[key].split()}
    assert named == files and written.images + written.masks == len(files)
    source = np.asarray(Image.open(next(data["voc"].glob("JPEGImages/*.png"))))
    assert any(np.array_equal(source, np.asarray(Image.open(tmp_path / "pairs" / name))) for name in files)


def test_units_that_cannot_be_read_are_named_and_the_others_written(tmp_path):
    folder = write_one_shot_folder(tmp_path / "data", folds=(0,))
    folder.image(folder.some_query).write_bytes(b"no picture")
    written = write(tmp_path / "pairs", data=folder.data, fixed=True)
    lost = [row for row in folder.listed("fixedsplits/pascal5i/split0_test.txt") if folder.some_query in " ".join(row)]
    assert len(written.failed) == len(lost) and folder.some_query in next(iter(written.failed.values()))
    assert len(read_table(tmp_path / "pairs")) == written.units
    assert {row["unit"] for row in read_table(tmp_path / "pairs")}.isdisjoint(written.failed)


def test_an_export_is_completed_and_never_mixed_with_another(tmp_path):
    given = {"scenes": 24, "tiers": "3"}
    first = write(tmp_path / "pairs", **given)
    before = {path: path.read_bytes() for path in sorted((tmp_path / "pairs").rglob("*.*"))}
    next((tmp_path / "pairs" / "images").iterdir()).unlink()
    assert write(tmp_path / "pairs", **given) == first
    assert {path: path.read_bytes() for path in sorted((tmp_path / "pairs").rglob("*.*"))} == before
    assert json.loads((tmp_path / "pairs" / "export.json").read_text())["options"]["tiers"] == [3]
    with pytest.raises(OptionError, match="the folder holds other pairs"):
        write(tmp_path / "pairs", **given, size="512")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").touch()
    with pytest.raises(OptionError, match="the folder holds other files"):
        write(tmp_path / "taken", **given)
    with pytest.raises(OptionError, match="--out is a file"):
        write(tmp_path / "taken" / "notes.txt", **given)


def test_stored_answers_that_are_missing_fail_by_name(tmp_path):
    given = {"scenes": 24, "tiers": "3", "folds": "0,1"}
    write(tmp_path / "pairs", **given, per_fold=True)
    answer_outside(tmp_path / "pairs", tmp_path / "answers")
    (tmp_path / "answers" / "tier3-fold1-00001.png").unlink()
    run = {"model": None, "pred": tmp_path / "answers", "max_failures": 1.0, **given}
    scored = one_shot_run(tmp_path / "run", **run).scored
    assert scored.failures["unit"].to_list() == ["tier3-fold1-00001"]
    assert set(whole_records(tmp_path / "run").filter(pl.col("tier") == 3)["fold"]) == {0, 1}
