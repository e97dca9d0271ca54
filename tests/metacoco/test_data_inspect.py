"""`hardlook data inspect`, as a user types it."""

import csv
import json
import shutil
from collections import Counter

import cv2
import numpy as np
import polars as pl
import pytest

from hardlook.metacoco.published import list_concepts
from hardlook.world.layouts import write_world


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world"), "concept-context", seed=0, count=96, size=(80, 64))


def lay(root, cells, same=()):
    """Files `place` by (place: images); those whose place is in `same` all hold the same bytes."""
    for place, images in cells.items():
        (root / place).mkdir(parents=True)
        for number in range(images):
            (root / place / f"{number}.jpg").write_text("same" if place in same else f"{place} {number}")
    return root


def test_page_numbers_and_splits_of_the_planted_world(hardlook, world, tmp_path):
    out = tmp_path / "deep" / "inspection"
    answer = hardlook("data", "inspect", "--data", world, "--ways", 2, "--shots", 1, "--queries", 1, "--out", out)
    assert answer.code == 0 and f"page: {out}" in answer.out and "No concept is in two splits" in answer.out
    document = json.loads((out / "inspection.json").read_text())
    manifest = pl.read_csv(world / "manifest.csv")
    assert document["images"] == len(manifest) == 96
    cells = {(one["split"], one["concept"], one["context"]): one["images"] for one in document["cells"]}
    assert cells == Counter(manifest.select("split", "concept", "context").iter_rows())
    assert [(one["split"], one["concepts"]) for one in document["splits"]] == [("train", 4), ("val", 2), ("test", 6)]
    with (out / "splits.csv").open() as lines:
        rows = {(row["concept"], row["split"]) for row in csv.DictReader(lines)}
    assert rows == set(manifest.select("concept", "split").iter_rows())
    page = (out / "inspection.html").read_text()
    assert all(words in page for words in ("Images by concept and context: test", "Classes that can take part"))
    # The splits that were written are a rule that gives the same splits.
    again = hardlook("data", "inspect", "--data", world, "--split-rule", out / "splits.csv", "--out", tmp_path / "b")
    assert again.code == 0
    assert json.loads((tmp_path / "b" / "inspection.json").read_text())["cells"] == document["cells"]


def test_what_is_wrong_is_said(hardlook, tmp_path):
    root = lay(
        tmp_path / "data",
        {"train/cat/snow": 2, "train/dog/mud": 3, "test/dog/snow": 1, "test/owl/mud": 1, "test/owl/fog": 2},
        same={"train/cat/snow", "test/owl/mud"},
    )
    answer = hardlook(
        "data", "inspect", "--data", root, "--ways", 1, "--modes", "iid", "--json", "--out", tmp_path / "o"
    )
    document = json.loads(answer.out)
    assert document["concepts_in_several_splits"] == {"dog": ["train", "test"]}
    (group,) = document["duplicates_across_splits"]
    assert {one["image"] for one in group} == {"test/owl/mud/0.jpg", "train/cat/snow/0.jpg", "train/cat/snow/1.jpg"}
    assert document["duplicates_within_splits"] == []
    said = " ".join(document["in_words"])
    assert "Wrong: 1 concept is in more than one split (dog)" in said
    assert "Wrong: 1 image by content in more than one split (3 files)" in said
    assert not (tmp_path / "o" / "splits.csv").exists()
    page = (tmp_path / "o" / "inspection.html").read_text()
    assert "Concepts in more than one split" in page and "Images with equal content" in page


def test_one_file_under_two_concepts_is_wrong_and_shown(hardlook, tmp_path):
    random = np.random.default_rng(0)
    for place in ("cat/snow/0", "cat/snow/1", "dog/snow/0", "dog/snow/1"):
        (tmp_path / "data" / place).parent.mkdir(parents=True, exist_ok=True)
        picture = cv2.resize(random.integers(0, 256, (8, 8, 3), np.uint8), (64, 64))
        cv2.imwrite(str(tmp_path / "data" / f"{place}.png"), picture)
    shutil.copy(tmp_path / "data/cat/snow/0.png", tmp_path / "data/dog/snow/copy.png")
    shutil.copy(tmp_path / "data/cat/snow/1.png", tmp_path / "data/cat/snow/again.png")
    words = ("data", "inspect", "--data", tmp_path / "data", "--ways", 1, "--modes", "blind", "--json")
    said = json.loads(hardlook(*words, "--out", tmp_path / "a").out)["in_words"]
    [duplicates] = [one for one in said if one.startswith("2 images by content more than once")]
    assert duplicates.endswith("Wrong: 1 of them under several concepts.")
    decoded = json.loads(hardlook(*words, "--decode", "--out", tmp_path / "b").out)["decoded"]
    [group] = decoded["similar"]
    assert {one["image"] for one in group["images"]} == {"cat/snow/0.png", "dog/snow/copy.png"}
    assert group["wrong"] == ["several concepts"] and group["pixels_equal"]
    assert "picture 1" in (tmp_path / "b" / "inspection.html").read_text()


def test_names_that_differ_in_case_alone_are_said(hardlook, tmp_path):
    root = lay(tmp_path / "data", {"cat/Snow": 2, "dog/snow": 2})
    words = ("data", "inspect", "--data", root, "--ways", 1, "--modes", "blind", "--json")
    document = json.loads(hardlook(*words, "--out", tmp_path / "o").out)
    assert document["similar_names"] == {"concepts": [], "contexts": [["Snow", "snow"]]}
    assert any(one.startswith("Check: contexts") and "'Snow' and 'snow'" in one for one in document["in_words"])


def test_classes_that_cannot_form_tasks_are_named_with_the_reason(hardlook, tmp_path):
    # Two supports and two queries: fox has one context only, owl nowhere four images.
    root = lay(tmp_path / "data", {f"{name}/{where}": 4 for name in ("cat", "dog") for where in ("snow", "mud")})
    lay(root, {"fox/snow": 6, "owl/snow": 3, "owl/mud": 3})
    words = ("data", "inspect", "--data", root, "--modes", "iid,ood", "--ways", "2,4", "--shots", 2, "--queries", 2)
    answer = hardlook(*words, "--out", tmp_path / "o")
    assert (
        "2-way 2-shot, 2 queries per class: 2 of 4 classes can take part in every mode (by itself: iid 3, ood 3)."
        in (answer.out)
    )
    assert "Too few for 4 ways." in answer.out
    tasks = json.loads((tmp_path / "o" / "inspection.json").read_text())["tasks"]
    found = {(one["ways"], one["mode"]): (one["eligible"], set(one["left_out"]), one["possible"]) for one in tasks}
    assert found[2, "iid"] == (3, {"owl"}, True)
    assert found[2, "ood"] == (3, {"fox"}, True)
    assert found[2, "all of these"] == (2, {"fox", "owl"}, True)
    assert found[4, "all of these"][2] is False
    assert "one context only" in (tmp_path / "o" / "inspection.html").read_text()


def test_against_published(hardlook, tmp_path):
    """A manifest of three published classes, one image short of one pair; rows may name one file many times."""
    (tmp_path / "a.jpg").write_text("a")
    chosen = {one.name: one for one in list_concepts() if one.name in ("zebra", "rat", "toilet")}
    rows = [
        ("a.jpg", name, context, {"val": "validation"}.get(one.split, one.split))
        for name, one in chosen.items()
        for context, count in one.contexts.items()
        for _ in range(count)
    ]
    dropped = rows.pop()
    table = pl.DataFrame(rows, schema=["path", "concept", "context", "split"], orient="row")
    table.write_parquet(tmp_path / "m.parquet")
    words = ("data", "inspect", "--data", tmp_path / "m.parquet", "--modes", "blind", "--ways", "1")
    answer = hardlook(*words, "--against", "published", "--json", "--out", tmp_path / "o")
    found = json.loads(answer.out)["published"]
    assert len(found["absent"]) == 97 and found["extra"] == [] and found["splits"] == [] and not found["same"]
    count = chosen[dropped[1]].contexts[dropped[2]]
    (pair,), (whole,) = found["pairs"], found["classes"]
    assert (pair["concept"], pair["context"], pair["published"], pair["here"]) == (*dropped[1:3], count, count - 1)
    assert (whole["concept"], whole["published"] - whole["here"]) == (dropped[1], 1)
    assert found["equal_pairs"] == sum(len(one.contexts) for one in chosen.values()) - 1
    page = (tmp_path / "o" / "inspection.html").read_text()
    assert "Against the published data" in page and "Counts that differ" in page


def test_a_rule_splits_what_has_no_splits(hardlook, tmp_path):
    root = lay(tmp_path / "data", {f"c{number}/snow": number + 1 for number in range(10)})
    words = ("data", "inspect", "--data", root, "--modes", "blind", "--ways", 1, "--shots", 1, "--queries", 1)
    none = hardlook(*words, "--out", tmp_path / "none")
    assert "There are no splits" in none.out and not (tmp_path / "none" / "splits.csv").exists()
    assert hardlook(*words, "--split-rule", "size", "--out", tmp_path / "size").code == 0
    lines = (tmp_path / "size" / "splits.csv").read_text().splitlines()
    # 6.4, 2 and 1.6 classes are 6, 2 and 2: the six largest train, the two smallest validate.
    assert lines == ["concept,split", "c0,val", "c1,val", "c2,test", "c3,test", *(f"c{n},train" for n in range(4, 10))]
    for seed in (1, 2):
        assert hardlook(*words, "--split-rule", "seed", "--seed", seed, "--out", tmp_path / str(seed)).code == 0
    assert (tmp_path / "1" / "splits.csv").read_text() != (tmp_path / "2" / "splits.csv").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "paper"), "there are only the published counts"),
        (("--ways", "5,x"), "expected whole numbers from 1"),
        (("--shots", "0"), "expected whole numbers from 1"),
        (("--modes", "iid,odd"), "no mode 'odd'"),
        (("--split-rule", "sizes"), "no such split rule or file"),
    ],
)
def test_wrong_words_are_refused(hardlook, tmp_path, words, said):
    root = lay(tmp_path / "data", {"cat/snow": 1})
    answer = hardlook("data", "inspect", "--data", root, *words, "--out", tmp_path / "o")
    assert answer.code == 1 and said in answer.err and not (tmp_path / "o").exists()


@pytest.mark.real
def test_pacs_is_even_and_can_do_every_mode(hardlook, shared_data, tmp_path):
    answer = hardlook("data", "inspect", "--data", shared_data / "data" / "pacs", "--ways", 5, "--out", tmp_path / "o")
    assert "1120 images of 7 concepts in 4 contexts; 28 of the 28 pairs hold images." in answer.out
    assert "5-way 5-shot, 15 queries per class: all 7 classes can take part in every mode." in answer.out


def test_decoding_finds_corrupt_files_and_copies_and_shows_them(hardlook, tmp_path):
    root, rng = tmp_path / "data", np.random.default_rng(0)
    for place in ("train/cat/snow", "test/dog/snow", "test/owl/mud"):
        (root / place).mkdir(parents=True)
        for number in range(2):
            picture = cv2.resize(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8), (90, 60))
            cv2.imwrite(str(root / place / f"{number}.jpg"), picture)
    copied = cv2.imread(str(root / "train/cat/snow/0.jpg"))
    cv2.imwrite(str(root / "test/dog/snow/pixels.png"), copied)
    cv2.imwrite(str(root / "test/owl/mud/mirrored.jpg"), cv2.imread(str(root / "test/owl/mud/1.jpg"))[:, ::-1])
    (root / "test/owl/mud/cut.jpg").write_bytes((root / "test/owl/mud/0.jpg").read_bytes()[:200])
    (root / "test/owl/mud/empty.png").touch()
    words = ("data", "inspect", "--data", root, "--modes", "blind", "--ways", 1, "--shots", 1, "--queries", 1, "--json")
    answer = hardlook(*words, "--decode", "--out", tmp_path / "o")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    corrupt = document["decoded"]["corrupt"]
    assert [one["image"] for one in corrupt] == ["test/owl/mud/cut.jpg", "test/owl/mud/empty.png"]
    assert "empty" in corrupt[1]["why"] and document["images"] == 8
    across, within = document["decoded"]["similar"]
    assert across["pixels_equal"] and across["wrong"] == ["several splits", "several concepts"]
    assert {one["image"] for one in across["images"]} == {"test/dog/snow/pixels.png", "train/cat/snow/0.jpg"}
    assert not within["pixels_equal"] and within["wrong"] == [] and within["correlation"] > 0.95
    assert {one["image"] for one in within["images"]} == {"test/owl/mud/1.jpg", "test/owl/mud/mirrored.jpg"}
    text = " ".join(document["in_words"])
    assert "Wrong: 2 images cannot be read" in text and "2 pictures in several files (4 files; 1 with equal" in text
    assert "Wrong: 1 of them in several splits." in text and "Wrong: 1 of them in several concepts." in text
    page = (tmp_path / "o" / "inspection.html").read_text()
    assert page.count("<img") >= 4 and "test/owl/mud/mirrored.jpg" in page and "Images that cannot be read" in page
    # Without decoding an empty file is an error, and nothing is said about pictures.
    assert hardlook(*words, "--out", tmp_path / "p").code != 0
    (root / "test/owl/mud/empty.png").unlink()
    plain = json.loads(hardlook(*words, "--out", tmp_path / "p").out)
    assert plain["decoded"] is None and plain["images"] == 9
