from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.context_splits import (
    split_by_file,
    split_by_seed,
    split_by_size,
    split_name,
    split_order,
    split_sizes,
)
from hardlook.errors import DataError

NAMES = st.text("abcdefgh", min_size=1, max_size=4)


def test_the_paper_has_64_20_and_16_of_100() -> None:
    assert split_sizes(100) == {"train": 64, "test": 20, "val": 16}
    assert split_sizes(50) == {"train": 32, "test": 10, "val": 8}
    # 4.48, 1.4 and 1.12 classes: the seventh goes where the remainder is largest.
    assert split_sizes(7) == {"train": 5, "test": 1, "val": 1}
    assert split_sizes(1) == {"train": 1, "test": 0, "val": 0}


@given(st.integers(0, 2000))
def test_shares_stay_within_one_concept(concepts: int) -> None:
    sizes = split_sizes(concepts)
    assert sum(sizes.values()) == concepts
    for name, share in (("train", 0.64), ("test", 0.20), ("val", 0.16)):
        assert abs(sizes[name] - share * concepts) < 1


@pytest.mark.real
def test_by_size_gives_the_published_splits(shared_data: Path) -> None:
    import csv

    with (shared_data / "reference" / "metacoco" / "metacoco_classes.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    found = split_by_size({row["concept"]: int(row["count_table4"]) for row in rows})
    names = {"training": "train", "validation": "val", "testing": "test"}
    assert found == {row["concept"]: names[row["split"]] for row in rows}


@given(st.dictionaries(NAMES, st.integers(1, 9), min_size=3))
def test_by_size_no_test_concept_is_larger_than_a_training_one(images: dict[str, int]) -> None:
    found = split_by_size(images)
    assert set(found) == set(images)
    assert found == split_by_size(dict(reversed(images.items())))
    parts = {
        name: [images[concept] for concept in found if found[concept] == name] for name in ("train", "test", "val")
    }
    assert min(parts["train"]) >= max(parts["test"], default=0) >= max(parts["val"], default=0)


@given(st.sets(NAMES, min_size=1), st.integers(0, 5))
def test_by_seed_order_does_not_count(concepts: set[str], seed: int) -> None:
    found = split_by_seed(sorted(concepts), seed)
    assert found == split_by_seed(sorted(concepts, reverse=True), seed)
    assert Counter(found.values()) == {name: size for name, size in split_sizes(len(concepts)).items() if size}


def test_by_seed_another_seed_is_another_split() -> None:
    concepts = [str(number) for number in range(100)]
    splits = [split_by_seed(concepts, seed) for seed in range(40)]
    assert len({tuple(sorted(found.items())) for found in splits}) == 40
    # Each concept trains with probability .64: 40 draws of it lie within four deviations of 25.6.
    trained = Counter(concept for found in splits for concept in found if found[concept] == "train")
    assert all(abs(trained[concept] - 25.6) < 4 * (40 * 0.64 * 0.36) ** 0.5 for concept in concepts)


def test_by_file(tmp_path: Path) -> None:
    path = tmp_path / "splits.csv"
    path.write_text("\ufeffconcept,split\ndog,Training\ncat,valid\nowl,testing\nfox,held out\nowl,test\n")
    assert split_by_file(path, ["owl", "dog", "cat"]) == {"cat": "val", "dog": "train", "owl": "test"}
    with pytest.raises(DataError, match="2 of 3 concepts have no split here: ant, bee") as caught:
        split_by_file(path, ["bee", "ant", "dog"])
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
        split_by_file(path, ["a"])
    assert caught.value.remedy and "splits.csv" in str(caught.value)


def test_names_and_their_order() -> None:
    assert [split_name(name) for name in ("train", "Training", "VALID", "testing", "Dev")] == [
        "train", "train", "val", "test", "Dev",
    ]  # fmt: skip
    assert split_order(["b", "val", "a", "train", "val", "test"]) == ("train", "val", "test", "a", "b")
