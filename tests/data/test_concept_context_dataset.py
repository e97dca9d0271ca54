"""Datasets of concepts in contexts: splits, arrays and duplicates, over all layouts."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.data.concept_context import ConceptContextArrays, ConceptContextDataset, open_dataset
from hardlook.errors import DataError

PLACES = {
    "train/dog/grass/1.jpg": "a", "train/dog/snow/2.jpg": "b", "train/cat/grass/3.jpg": "a",
    "validation/owl/grass/4.jpg": "c", "test/fox/snow/5.jpg": "d", "test/fox/mud/6.jpg": "b", "test/fox/mud/7.jpg": "e",
}  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


def lay(root: Path, places: dict[str, str]) -> Path:
    for place, text in places.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    return root


def rows_of(dataset: ConceptContextDataset) -> list[tuple[str, str, str | None]]:
    return [(row.concept, row.context, row.split) for row in dataset.rows]


def test_the_three_layouts_agree(tmp_path: Path) -> None:
    first = open_dataset(lay(tmp_path / "split", PLACES))
    flat = lay(tmp_path / "flat", {place.partition("/")[2]: text for place, text in PLACES.items()})
    (tmp_path / "splits.csv").write_text("concept,split\ndog,training\ncat,train\nowl,val\nfox,test\n")
    second = open_dataset(flat, rule=tmp_path / "splits.csv")
    lines = [f"{place},{place.split('/')[1]},{place.split('/')[2]},{place.split('/')[0]}" for place in PLACES]
    (tmp_path / "split" / "list.csv").write_text("\n".join(["path,concept,context,split", *lines]))
    third = open_dataset(str(tmp_path / "split" / "list.csv"))
    assert first.rows == third.rows
    assert sorted(rows_of(first), key=str) == sorted(rows_of(second), key=str)
    assert first.splits == second.splits == ("train", "val", "test")
    assert (first.rule, second.rule) == (None, str(tmp_path / "splits.csv"))
    assert first.cells("test") == second.cells("test") == {("fox", "mud"): 2, ("fox", "snow"): 1}


def test_arrays_of_a_split(tmp_path: Path) -> None:
    dataset = open_dataset(lay(tmp_path / "data", PLACES))
    table = dataset.image_table("train")
    names = [row.name for row in dataset.of_split("train")]
    assert names == ["train/cat/grass/3.jpg", "train/dog/grass/1.jpg", "train/dog/snow/2.jpg"]
    assert (table.concepts, table.contexts) == (("cat", "dog"), ("grass", "snow"))
    assert (table.concept.tolist(), table.context.tolist()) == ([0, 1, 1], [0, 0, 1])
    assert table.content.tolist() == [0, 0, 1]
    assert {array.dtype for array in (table.concept, table.context, table.content)} == {np.dtype(np.int64)}
    assert len(dataset.image_table().concept) == 7
    with pytest.raises(DataError, match="no image of split 'dev'") as caught:
        dataset.image_table("dev")
    assert "train, val, test" in str(caught.value.remedy)


def test_arrays_have_the_fields_of_an_image_table(tmp_path: Path) -> None:
    from hardlook.metacoco.tasks.images import ImageTable, image_table

    assert [one.name for one in fields(ConceptContextArrays)] == [one.name for one in fields(ImageTable)]
    dataset = open_dataset(lay(tmp_path / "data", PLACES))
    ours, rows = dataset.image_table("test"), dataset.of_split("test")
    built = image_table([row.concept for row in rows], [row.context for row in rows], dataset.hashes("test"))
    for one in fields(ImageTable):
        assert np.array_equal(getattr(ours, one.name), getattr(built, one.name))


def test_duplicates_within_and_across_splits(tmp_path: Path) -> None:
    found = open_dataset(lay(tmp_path / "data", PLACES)).duplicates()
    assert [[row.name for row in group] for group in found.within] == [
        ["train/cat/grass/3.jpg", "train/dog/grass/1.jpg"]
    ]
    assert [[row.name for row in group] for group in found.across] == [["test/fox/mud/6.jpg", "train/dog/snow/2.jpg"]]


def test_shared_concepts(tmp_path: Path) -> None:
    root = lay(tmp_path / "data", {**PLACES, "test/dog/grass/8.jpg": "x", "train/owl/mud/9.jpg": "y"})
    assert open_dataset(root).shared_concepts() == {"dog": ("train", "test"), "owl": ("train", "val")}
    # A rule deals concepts out whole.
    assert open_dataset(root, rule="size").shared_concepts() == {}


def test_rules_replace_splits(tmp_path: Path) -> None:
    root = lay(tmp_path / "data", PLACES)
    sized = open_dataset(root, rule="size")
    # Four concepts: 2.56, .8 and .64 give 2, 1 and 1 (fox 3, dog 2, then cat and owl by name).
    assert {row.concept: row.split for row in sized.rows} == {
        "fox": "train",
        "dog": "train",
        "cat": "test",
        "owl": "val",
    }
    assert sized.rule == "size" and open_dataset(root, rule="seed", seed=3).rule == "seed 3"
    draws = [{row.concept: row.split for row in open_dataset(root, rule="seed", seed=n).rows}["fox"] for n in range(20)]
    assert set(draws) == {"train", "test", "val"}
    with pytest.raises(DataError, match="no such split rule or file"):
        open_dataset(root, rule="sizes")


def test_half_a_column_of_splits_is_refused(tmp_path: Path) -> None:
    lay(tmp_path, {"a.jpg": "a", "b.jpg": "b"})
    (tmp_path / "m.csv").write_text("path,concept,context,split\na.jpg,cat,snow,train\nb.jpg,dog,snow,\n")
    with pytest.raises(DataError, match="1 of 2 images have no split") as caught:
        open_dataset(tmp_path / "m.csv")
    assert caught.value.unit == "b.jpg"
    assert open_dataset(tmp_path / "m.csv", rule="size").splits == ("train", "test")


def test_without_splits_all_images_are_one_table(tmp_path: Path) -> None:
    dataset = open_dataset(lay(tmp_path / "data", {"cat/snow/1.jpg": "a", "dog/snow/2.jpg": "b"}))
    assert dataset.splits == () and len(dataset.image_table().concept) == 2
    with pytest.raises(DataError, match="no image of split 'test'") as caught:
        dataset.of_split("test")
    assert "rule" in str(caught.value.remedy)


def test_folders_links_and_hidden_files(tmp_path: Path) -> None:
    lay(tmp_path / "real", {"snow/1.jpg": "a", ".cache/2.jpg": "b", "snow/.3.jpg": "c", "snow/notes.txt": "d"})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cat").symlink_to(tmp_path / "real")
    assert rows_of(open_dataset(tmp_path / "data")) == [("cat", "snow", None)]


def test_splits_without_contexts_are_not_taken_for_concepts(tmp_path: Path) -> None:
    root = lay(tmp_path / "data", {"train/cat/1.jpg": "a", "test/dog/2.jpg": "b"})
    with pytest.raises(DataError, match="the folders test, train look like splits"):
        open_dataset(root)
    # A dataset may well have the concept train.
    vehicles = lay(tmp_path / "vehicles", {"train/snow/1.jpg": "a", "bus/snow/2.jpg": "b"})
    assert {row.concept for row in open_dataset(vehicles).rows} == {"train", "bus"}


@settings(max_examples=25)
@given(st.lists(st.tuples(*map(st.sampled_from, ("abc", "xy", "12345"))), min_size=1, max_size=12))
def test_cells_and_arrays_count_the_same(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, ...]]
) -> None:
    root = tmp_path_factory.mktemp("drawn")
    lay(root, {f"{concept}/{context}/{place}.jpg": text for place, (concept, context, text) in enumerate(drawn)})
    dataset = open_dataset(root)
    table = dataset.image_table()
    pairs = [(table.concepts[k], table.contexts[c]) for k, c in zip(table.concept, table.context, strict=True)]
    assert {pair: pairs.count(pair) for pair in pairs} == dataset.cells()
    texts = [row.path.read_text() for row in dataset.rows]
    same = np.equal.outer(table.content, table.content)
    assert np.array_equal(same, np.equal.outer(np.array(texts), np.array(texts)))
