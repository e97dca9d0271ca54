"""What is checked before a run: changed data is not continued, splits share neither classes nor images."""

import shutil

import cv2
import numpy as np
import PIL.Image
import polars as pl
import pytest

from hardlook.errors import ChangedRun, DataError
from hardlook.file_hashes import hash_file
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


def photograph(seed):
    """Large and small shapes at random: unlike scenes of the planted world, no two resemble each other."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, top, (*grid, 3), dtype=np.uint8) for top, grid in ((256, (5, 5)), (80, (24, 24)))]
    return cv2.add(*(cv2.resize(part, (72, 72), interpolation=cv2.INTER_CUBIC) for part in parts))


@pytest.fixture
def leaky(tmp_path):
    """Photographs of three concepts in two splits, and four copies (`LEAKS`) of some of them."""
    root, seeds = tmp_path / "photographs", iter(range(100))
    places = [f"test/{name}/{where}" for name in ("cat", "dog", "owl") for where in ("snow", "mud")] + [
        "train/bus/snow"
    ]
    for place in places:
        (root / place).mkdir(parents=True)
        for number in range(4):
            cv2.imwrite(str(root / place / f"{number}.jpg"), photograph(next(seeds)))

    def copy(source, target, change=lambda image: image):
        cv2.imwrite(str(root / target), change(cv2.imread(str(root / source))))

    copy("test/cat/snow/0.jpg", "test/cat/mud/png.png")  # the same pixels in another context
    copy("test/cat/snow/1.jpg", "test/cat/snow/small.jpg", lambda image: cv2.resize(image, (50, 50)))
    copy("test/dog/snow/0.jpg", "test/owl/snow/mirrored.jpg", lambda image: image[:, ::-1])  # another concept
    copy("train/bus/snow/0.jpg", "test/owl/mud/cropped.jpg", lambda image: image[3:, 3:])  # another split
    return root


LEAKS = {
    "test/cat/mud/png.png": "test/cat/snow/0.jpg",
    "test/cat/snow/small.jpg": "test/cat/snow/1.jpg",
    "test/owl/snow/mirrored.jpg": "test/dog/snow/0.jpg",
    "test/owl/mud/cropped.jpg": "train/bus/snow/0.jpg",
}


def test_near_duplicates_are_kept_dropped_or_refused_as_asked(leaky, tmp_path):
    kept = load_images(make_source(MetaCocoOptions(data={"root": leaky})))
    assert set(LEAKS) <= set(kept.names) and not kept.left_out
    dropped = load_images(make_source(MetaCocoOptions(data={"root": leaky}, near_duplicates="drop")))
    # Of a picture in one concept the first file stays; of one in two concepts none.
    first = min("test/cat/mud/png.png", "test/cat/snow/0.jpg")
    gone = {"test/cat/snow/0.jpg", "test/cat/snow/small.jpg", *("test/owl/snow/mirrored.jpg", "test/dog/snow/0.jpg")}
    gone.add("test/owl/mud/cropped.jpg")
    assert first == "test/cat/mud/png.png" and set(kept.names) - set(dropped.names) == gone
    (note,) = dropped.left_out
    assert (note.what, note.count) == ("near-duplicate images", 5) and set(note.examples) == gone
    with pytest.raises(DataError, match="5 images show the same picture") as caught:
        make_source(MetaCocoOptions(data={"root": leaky}, near_duplicates="refuse"))
    assert "--near-duplicates drop" in str(caught.value)
    # Once they are gone there is nothing to refuse.
    for name in gone:
        (leaky / name).unlink()
    clean = make_source(MetaCocoOptions(data={"root": leaky}, near_duplicates="refuse"))
    assert clean.similar == () and load_images(clean).names == dropped.names


def test_a_run_says_what_it_dropped(world, tmp_path):
    (world / "manifest.csv").unlink()
    first, second, *_ = sorted((world / "test" / "dog").rglob("*.png"))
    for source, copy in ((first, world / "test/dog/fog/zz-copy.png"), (second, world / "test/cat/fog/zz-copy.png")):
        PIL.Image.open(source).save(copy, compress_level=0)  # other bytes, the same pixels
        assert source.read_bytes() != copy.read_bytes()
    given = {"near_duplicates": "drop"}
    card = run(world, tmp_path / "run", **given).scored.scorecard
    # One of the first picture stays; the second shows two concepts.
    (note,) = card.left_out
    assert (note.what, note.count) == ("near-duplicate images", 3)
    images = load_images(make_source(MetaCocoOptions(data={"root": world}, near_duplicates="drop")))
    rows = pl.read_parquet(sorted((tmp_path / "run" / "records").glob("part-*.parquet")))
    drawn = {images.hashes[row] for column in ("support", "query") for task in rows[column] for row in task}
    assert hash_file(second) not in drawn and len(images.names) == len(set(images.hashes))
    assert run(world, tmp_path / "run", **given).progress.before == 8
    with pytest.raises(ChangedRun):
        run(world, tmp_path / "run", near_duplicates="keep")


def test_a_corrupt_image_of_any_split_is_named_when_near_duplicates_are_looked_for(leaky):
    broken = leaky / "train/bus/snow/2.jpg"
    broken.write_bytes(b"cut")
    options = MetaCocoOptions(data={"root": leaky}, near_duplicates="drop")
    with pytest.raises(DataError, match="1 of 32 images cannot be read") as caught:
        make_source(options)
    assert broken.name in str(caught.value) and "--skip-corrupt" in str(caught.value)
    source = make_source(MetaCocoOptions(data={"root": leaky}, near_duplicates="drop", skip_corrupt=True))
    assert source.corrupt == () and len(source.similar) == 5
