"""What is checked before a run: changed data is not continued, splits share neither classes nor images."""

import shutil

import polars as pl
import pytest

from hardlook.errors import ChangedRun, DataError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.launch import launch
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.units import load_images, make_source
from hardlook.world.layouts import CONCEPT_SPLITS

pytestmark = pytest.mark.usefixtures("own_cache")

SMALL = {"shots": "1", "queries": 1, "tasks": 4, "repeats": 1, "resamples": 0, "modes": "iid,ood"}


def run(root, out, **given):
    return launch("metacoco", out=out, model="planted-learner", given={**SMALL, "data": {"root": root}, **given})


def rehearse(root, **given):
    return InMemoryRun("metacoco", {**SMALL, "data": {"root": root}, **given})


def listed(world, folder):
    """A manifest outside of the world, which lists its test images by absolute paths."""
    folder.mkdir()
    table = pl.read_csv(world / "manifest.csv").with_columns(path=str(world) + "/" + pl.col("path"))
    table.write_csv(folder / "list.csv")
    return folder / "list.csv"


def test_a_changed_image_of_a_manifest_is_not_continued(world, tmp_path):
    manifest = listed(world, tmp_path / "list")
    run(manifest, tmp_path / "run")
    assert run(manifest, tmp_path / "run").progress.before == 8
    images = sorted((world / "test").rglob("*.png"))
    shutil.copy(images[0], images[-1])
    with pytest.raises(ChangedRun, match="data images"):
        run(manifest, tmp_path / "run")


def test_a_changed_split_file_is_not_continued(written, tmp_path):
    rule = tmp_path / "splits.csv"

    def split(chosen):
        lines = (f"{name},{'test' if name in chosen else 'train'}\n" for name in CONCEPT_SPLITS)
        rule.write_text("concept,split\n" + "".join(lines))

    split({"cat", "owl", "pear"})
    run(written, tmp_path / "run", split_rule=str(rule), ways="2")
    assert run(written, tmp_path / "run", split_rule=str(rule), ways="2").progress.before == 8
    moved = rule.rename(tmp_path / "moved.csv")
    assert run(written, tmp_path / "run", split_rule=str(moved), ways="2").progress.before == 8
    split({"cat", "owl", "bus"})
    with pytest.raises(ChangedRun, match="data images") as caught:
        run(written, tmp_path / "run", split_rule=str(rule), ways="2")
    assert "data split_rule" in str(caught.value)


def test_tasks_listed_from_other_images_are_not_drawn(world):
    source = make_source(MetaCocoOptions(data={"root": world}))
    assert load_images(source).fingerprint == source.fingerprint
    load_images.cache_clear()
    images = sorted((world / "test").rglob("*.png"))
    shutil.copy(images[0], images[-1])
    with pytest.raises(DataError, match="changed after the tasks were listed"):
        load_images(source)


def test_classes_in_two_splits_are_refused_by_name(world):
    table = pl.read_csv(world / "manifest.csv")
    moved = (pl.col("concept") == "cat") & (pl.col("context") == "fog")
    table.with_columns(split=pl.when(moved).then(pl.lit("train")).otherwise("split")).write_csv(world / "manifest.csv")
    with pytest.raises(DataError, match=r"1 are in several: cat \(train, test\)") as caught:
        rehearse(world)
    assert "--split-rule" in str(caught.value)
    # As one split they hold nothing out.
    assert "cat" in load_images(make_source(rehearse(world, split="all").options)).table.concepts


def test_images_in_two_splits_are_left_out_and_counted(world):
    """Two test images of a fog cat are in the folders of a training class too."""
    doubled = sorted((world / "test" / "cat" / "fog").glob("*.png"))
    target = next((world / "train").glob("*/fog"))
    for place, image in enumerate(doubled):
        shutil.copy(image, target / f"double-{place}.png")
    (world / "manifest.csv").unlink()
    names = {image.relative_to(world).as_posix() for image in doubled}
    rehearsal = rehearse(world)
    [note] = rehearsal.left_out
    assert (note.what, note.count, set(note.examples)) == ("images in two splits", 2, names)
    opened = load_images(make_source(rehearsal.options))
    assert not names & set(opened.names)
    assert len(opened.names) == len(list((world / "test").rglob("*.png"))) - 2
    # Together the splits hold nothing out.
    everything = rehearse(world, split="all")
    assert not everything.left_out
    assert names <= set(load_images(make_source(everything.options)).names)


def test_all_classes_that_cannot_take_part_are_named(world):
    (world / "manifest.csv").unlink()
    for concept in CONCEPT_SPLITS:
        for image in (world / CONCEPT_SPLITS[concept] / concept).rglob("*.png"):
            if image.parent.name != "fog" and concept not in ("cat", "dog"):
                image.unlink()
    [note] = rehearse(world, split="all", ways="2").left_out
    assert set(note.examples) == set(CONCEPT_SPLITS) - {"cat", "dog"}
    assert note.count == len(note.examples) == 10
