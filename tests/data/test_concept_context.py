"""Datasets of concepts in contexts: splits, arrays and duplicates, over all layouts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.data.concept_context import (
    ConceptContextDataset,
    ImageTable,
    build_image_table,
    count_concepts_per_split,
    find_similar_names,
    list_images,
    normalize_split_name,
    open_dataset,
    read_concept_splits,
    sort_split_names,
    split_concepts_by_seed,
    split_concepts_by_size,
)
from hardlook.errors import DataError
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("world"), "concept-context", seed=2, count=24)


def test_round_trip_of_the_planted_world(folder: Path) -> None:
    world = PlantedWorld(seed=2, count=24, salient=True)
    rows = {int(row.path.stem): row for row in list_images(folder)}
    assert len(rows) == 24
    for index, rendered in enumerate(world):
        row = rows[index + 1]
        assert (row.concept, row.context) == (rendered.scene.subject.concept, rendered.scene.context)
        assert row.name == f"{row.split}/{row.concept}/{row.context}/{row.path.name}"
        assert np.array_equal(row.read(), rendered.image)
    splits = {row.concept: row.split for row in rows.values()}
    assert Counter(splits.values()) == {"test": 6, "train": 4, "val": 2}


def test_manifest_and_folders_agree(folder: Path, tmp_path: Path) -> None:
    rows = list_images(folder)
    table = pl.read_csv(folder / "manifest.csv")
    (folder / "manifest.csv").rename(tmp_path / "manifest.csv")
    try:
        assert list_images(folder) == rows
        table.write_parquet(folder / "table.parquet")
        assert list_images(folder / "table.parquet") == rows
    finally:
        (tmp_path / "manifest.csv").rename(folder / "manifest.csv")
    kept = list_images(folder, split="val")
    assert kept == tuple(row for row in rows if row.split == "val")
    with pytest.raises(DataError, match="no image of split 'dev'") as caught:
        list_images(folder, split="dev")
    assert "train, val, test" in str(caught.value.remedy)


def test_names_that_look_like_numbers_stay_text(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("path,concept,context\na.png,007,NA\n")
    row = list_images(tmp_path / "m.csv")[0]
    assert (row.concept, row.context, row.split, row.path) == ("007", "NA", None, tmp_path / "a.png")


def test_bad_manifests_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "columns.csv").write_text("file,concept\na,b\n")
    (tmp_path / "blank.csv").write_text("path,concept,context\na.png,cat,\n")
    (tmp_path / "none.csv").write_text("path,concept,context\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "rows.txt").write_text("a")
    for name, words in (
        ("columns.csv", "no column context, path"), ("blank.csv", "no context"), ("none.csv", "no image here"),
        ("empty.csv", "cannot be read"), ("rows.txt", "type '.txt'"), ("absent", "no such folder"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words) as caught:
            list_images(tmp_path / name)
        assert name in str(caught.value)
    mixed = tmp_path / "mixed"
    for place in ("cat/snow/a.jpg", "train/cat/snow/b.jpg"):
        (mixed / place).parent.mkdir(parents=True)
        (mixed / place).write_bytes(b"")
    with pytest.raises(
        DataError, match=r"1 below 2 folders, such as cat/snow/a.jpg; 1 below 3 folders, such as train/cat/snow/b.jpg"
    ):
        list_images(mixed)


@pytest.mark.real
def test_pacs(shared_data: Path) -> None:
    rows = list_images(shared_data / "data" / "pacs")
    cells = Counter((row.concept, row.context) for row in rows)
    assert len(rows) == 7 * 4 * 40
    assert len(cells) == 28
    assert set(cells.values()) == {40}
    assert rows[0].read().ndim == 3


NAMES = st.text("abcdefgh", min_size=1, max_size=4)


def test_the_paper_has_64_20_and_16_of_100() -> None:
    assert count_concepts_per_split(100) == {"train": 64, "test": 20, "val": 16}
    assert count_concepts_per_split(50) == {"train": 32, "test": 10, "val": 8}
    # 4.48, 1.4 and 1.12 classes: the seventh goes where the remainder is largest.
    assert count_concepts_per_split(7) == {"train": 5, "test": 1, "val": 1}
    assert count_concepts_per_split(1) == {"train": 1, "test": 0, "val": 0}


@given(st.integers(0, 2000))
def test_shares_stay_within_one_concept(concepts: int) -> None:
    sizes = count_concepts_per_split(concepts)
    assert sum(sizes.values()) == concepts
    for name, share in (("train", 0.64), ("test", 0.20), ("val", 0.16)):
        assert abs(sizes[name] - share * concepts) < 1


@pytest.mark.real
def test_by_size_gives_the_published_splits(shared_data: Path) -> None:
    import csv

    with (shared_data / "reference" / "metacoco" / "metacoco_classes.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    found = split_concepts_by_size({row["concept"]: int(row["count_table4"]) for row in rows})
    names = {"training": "train", "validation": "val", "testing": "test"}
    assert found == {row["concept"]: names[row["split"]] for row in rows}


@given(st.dictionaries(NAMES, st.integers(1, 9), min_size=3))
def test_by_size_no_test_concept_is_larger_than_a_training_one(images: dict[str, int]) -> None:
    found = split_concepts_by_size(images)
    assert set(found) == set(images)
    assert found == split_concepts_by_size(dict(reversed(images.items())))
    parts = {
        name: [images[concept] for concept in found if found[concept] == name] for name in ("train", "test", "val")
    }
    assert min(parts["train"]) >= max(parts["test"], default=0) >= max(parts["val"], default=0)


@given(st.sets(NAMES, min_size=1), st.integers(0, 5))
def test_by_seed_order_does_not_count(concepts: set[str], seed: int) -> None:
    found = split_concepts_by_seed(sorted(concepts), seed)
    assert found == split_concepts_by_seed(sorted(concepts, reverse=True), seed)
    assert Counter(found.values()) == {
        name: size for name, size in count_concepts_per_split(len(concepts)).items() if size
    }


def test_by_seed_another_seed_is_another_split() -> None:
    concepts = [str(number) for number in range(100)]
    splits = [split_concepts_by_seed(concepts, seed) for seed in range(40)]
    assert len({tuple(sorted(found.items())) for found in splits}) == 40
    # Each concept trains with probability .64: 40 draws of it lie within four deviations of 25.6.
    trained = Counter(concept for found in splits for concept in found if found[concept] == "train")
    assert all(abs(trained[concept] - 25.6) < 4 * (40 * 0.64 * 0.36) ** 0.5 for concept in concepts)


def test_by_file(tmp_path: Path) -> None:
    path = tmp_path / "splits.csv"
    path.write_text("\ufeffconcept,split\ndog,Training\ncat,valid\nowl,testing\nfox,held out\nowl,test\n")
    assert read_concept_splits(path, ["owl", "dog", "cat"]) == {"cat": "val", "dog": "train", "owl": "test"}
    with pytest.raises(DataError, match="2 of 3 concepts have no split: ant, bee") as caught:
        read_concept_splits(path, ["bee", "ant", "dog"])
    assert "splits.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("concept,part\na,b\n", "no column split"),
        ("", "no column concept, split"),
        ("concept,split\na,train\na,test\n", "'a' is in the splits train and test"),
        ("concept,split\na,train\nb\n", "no concept or no split"),
        (None, "no such split rule or file"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "splits.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=words) as caught:
        read_concept_splits(path, ["a"])
    assert caught.value.remedy and "splits.csv" in str(caught.value)


def test_names_and_their_order() -> None:
    assert [normalize_split_name(name) for name in ("train", "Training", "VALID", "testing", "Dev")] == [
        "train", "train", "val", "test", "Dev",
    ]  # fmt: skip
    assert sort_split_names(["b", "val", "a", "train", "val", "test"]) == ("train", "val", "test", "a", "b")


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


def test_names_are_sorted_and_numbers_point_at_them() -> None:
    table = build_image_table(["zebra", "ant"], ["snow", "snow"], ["a", "b"])
    assert table.concepts == ("ant", "zebra")
    assert [table.concepts[k] for k in table.concept] == ["zebra", "ant"]
    assert len(table) == 2


def test_contents_are_numbered_as_they_appear_whatever_the_hash() -> None:
    numbers = [build_image_table("abcd", "xxxx", hashes).content.tolist() for hashes in ("zyzx", "abac", "9191")]
    assert numbers == [[0, 1, 0, 2], [0, 1, 0, 2], [0, 1, 0, 1]]


def test_columns_of_different_lengths_are_refused_with_their_counts() -> None:
    with pytest.raises(DataError, match="2 of concept, 2 of context, 1 of content"):
        ImageTable(("a",), ("x",), np.zeros(2, int), np.zeros(2, int), np.zeros(1, int))


def test_numbers_without_a_name_are_refused() -> None:
    with pytest.raises(DataError, match=r"'context' of an image table must lie in 0\.\.0, it reaches from 0 to 3"):
        ImageTable(("a",), ("x",), np.zeros(2, int), np.array([0, 3]), np.arange(2))


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


@pytest.mark.parametrize(("concept", "context"), [("cat\ndog", "snow"), ("cat", "deep\r\nsnow")])
def test_a_line_break_in_a_name_is_an_error(tmp_path, concept, context):
    (tmp_path / "manifest.csv").write_text(f'path,concept,context\na.png,"{concept}","{context}"\n', newline="")
    with pytest.raises(DataError, match="a line break in the name") as caught:
        list_images(tmp_path)
    assert caught.value.unit == "a.png"


def manifest(folder: Path, rows: list[tuple[str, ...]]) -> Path:
    pl.DataFrame(rows, schema=["path", "concept", "context", "split"], orient="row").write_csv(folder / "manifest.csv")
    return folder


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("contexts", ("snow", "snow ")),
        ("contexts", ("deep snow", "deep  snow")),
        ("concepts", ("caf\u00e9", "cafe\u0301")),
    ],
)
def test_two_names_that_look_the_same_are_an_error(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    labels = [(name, "fog") if kind == "concepts" else ("cat", name) for name in names]
    manifest(tmp_path, [(f"{place}.png", *pair, "test") for place, pair in enumerate(labels)])
    with pytest.raises(DataError, match=f"two {kind} look the same") as caught:
        list_images(tmp_path)
    assert ascii(names[1]) in caught.value.what and caught.value.unit == "1.png"


def test_names_that_differ_in_case_are_different_and_found(tmp_path: Path) -> None:
    labels = [("A", "deep_snow"), ("a", "Deep snow"), ("b", "deep-snow"), ("b", "fog")]
    rows = list_images(manifest(tmp_path, [(f"{place}.png", *pair, "test") for place, pair in enumerate(labels)]))
    assert find_similar_names(rows) == {
        "concepts": (("A", "a"),),
        "contexts": (("Deep snow", "deep-snow", "deep_snow"),),
    }


def test_spaces_around_the_name_of_a_split_do_not_count(tmp_path: Path) -> None:
    manifest(
        tmp_path, [(f"{place}.png", "cat", "fog", name) for place, name in enumerate(("test", " Test", "testing "))]
    )
    assert open_dataset(tmp_path).splits == ("test",)


@pytest.mark.parametrize("where", ["caf\udce9/snow/0.png", "cafe/\udce9/0.png", "cafe/snow/\udce9.png"])
def test_a_name_in_another_encoding_than_utf_8_is_an_error(tmp_path: Path, where: str) -> None:
    path = tmp_path / where
    try:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    except OSError:
        pytest.skip("names of this file system are Unicode")
    with pytest.raises(DataError, match="a name is not UTF-8") as caught:
        list_images(tmp_path)
    assert "\\udce9" in str(caught.value.unit)
