"""The shipped tables: ids, senses, the published variant cell by cell, and the page that lists the differences."""

import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.similarity.graph_measures import path_matrix
from hardlook.similarity.label_sets import find_differences, list_label_sets, load_label_set
from hardlook.similarity.label_synsets import assign_synsets
from hardlook.similarity.wordnet.nouns import load_nouns

ROOT = Path(__file__).parents[2]

SIZES = {
    "voc20": 20,
    "pc59": 59,
    "pc459": 459,
    "ade150": 150,
    "ade847": 847,
    "coco80": 80,
    "coco133": 133,
    "coco171": 171,
    "cityscapes19": 19,
}

PUBLISHED = {"voc20": "voc20", "pc59": "context59", "pc459": "context459", "ade150": "ade150", "coco80": "coco80"}

PUBLISHED["coco133"] = "coco133"

EVERY = [(shipped.name, variant) for shipped in list_label_sets() for variant in shipped.variants]


@pytest.fixture(scope="module")
def nouns():
    return load_nouns()


def similarity(labels, first, second, nouns):
    nodes = [nouns.index(labels.find(name).synset) for name in (first, second)]
    return path_matrix(nouns.graph, nodes)[0, 1]


def test_the_sets_and_their_sizes():
    assert {shipped.name: shipped.size for shipped in list_label_sets()} == SIZES
    assert {name: len(load_label_set(name)) for name in SIZES} == SIZES


@pytest.mark.parametrize("name", SIZES)
def test_ids_count_from_zero_and_nothing_comes_twice(name):
    labels = load_label_set(name)
    assert labels.ids.tolist() == list(range(SIZES[name]))
    assert len({label.name for label in labels}) == SIZES[name]
    assert len(set(labels.category_ids.tolist())) == SIZES[name]
    for label in labels:
        assert labels.find(label.name) is label
        assert label.name not in label.aliases and len(set(label.aliases)) == len(label.aliases)


def test_category_ids():
    # COCO leaves out ten of its first ninety ids and has no 91; Cityscapes counts classes that are not evaluated.
    missing = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
    things = [i for i in range(1, 91) if i not in missing]
    assert load_label_set("coco80").category_ids.tolist() == things
    assert load_label_set("coco171").category_ids.tolist() == [*things, *range(92, 183)]
    assert load_label_set("coco133").category_ids.tolist()[:80] == things
    cityscapes = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
    assert load_label_set("cityscapes19").category_ids.tolist() == cityscapes


def test_things_and_stuff():
    counts = {"voc20": 20, "ade150": 100, "coco80": 80, "coco133": 80, "coco171": 80, "cityscapes19": 8}
    assert {name: int(load_label_set(name).things.sum()) for name in counts} == counts
    assert load_label_set("coco171").names[80:82] == ("banner", "blanket")


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_every_synset_is_in_wordnet_by_its_own_name(name, variant, nouns):
    for label in load_label_set(name, variant):
        for synset in filter(None, (label.synset, label.hypernym)):
            assert nouns.name(nouns.index(synset)) == synset
        assert not (label.synset and label.hypernym)
        assert variant == "published" or label.synset or label.hypernym, label.name


@pytest.mark.real
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_equals_the_recovered_table_in_every_cell(name, shared_data, nouns):
    file = shared_data / "reference" / "open" / "published_synsets.json"
    if not file.is_file():
        pytest.skip(f"no recovered tables at {file}")
    recovered = json.loads(file.read_text())[PUBLISHED[name]]
    ours = load_label_set(name, "published")
    coco = name.startswith("coco")
    rows = [
        {
            "id": label.category_id if coco else label.id,
            "label": ", ".join((label.name, *label.aliases)) if name == "ade150" else label.name,
            "synset": label.synset,
            "offset": nouns.offset(nouns.index(label.synset)) if label.synset else None,
        }
        for label in ours
    ]
    assert rows == recovered


@pytest.mark.real
def test_coco133_equals_the_panoptic_categories(shared_data):
    categories = json.loads((shared_data / "data" / "coco100" / "panoptic.json").read_text())["categories"]
    theirs = sorted((row["id"], row["name"], bool(row["isthing"])) for row in categories)
    assert [(label.category_id, label.name, label.isthing) for label in load_label_set("coco133")] == theirs


@pytest.mark.parametrize(
    ("name", "label", "word"),
    [
        ("ade150", "palm", "palm tree"),
        ("coco80", "mouse", "computer mouse"),
        ("coco133", "mouse", "computer mouse"),
        ("pc59", "mouse", "computer mouse"),
        ("coco80", "microwave", "microwave oven"),
        ("coco133", "toilet", "commode"),
        ("ade150", "toilet", "commode"),
        ("ade150", "bulletin board", "notice board"),
        ("voc20", "motorbike", "motorcycle"),
        ("pc459", "crane", "lifts and moves heavy objects"),
        ("pc59", "wood", "the hard fibrous lignified substance under the bark of trees"),
        ("pc459", "wood", "the hard fibrous lignified substance under the bark of trees"),
    ],
)
def test_named_slips_are_corrected(name, label, word, nouns):
    # The right sense is known by another of its words that has one meaning only, or by its gloss.
    corrected, published = (load_label_set(name, variant).find(label).synset for variant in ("corrected", "published"))
    assert corrected != published
    sense = nouns.sense(nouns.index(corrected))
    assert word.replace(" ", "_") in sense.lemmas or sense.gloss.startswith(word)


def test_corrected_senses_bring_kin_together(nouns):
    coco, ade = load_label_set("coco80"), load_label_set("ade150")
    assert similarity(coco, "mouse", "keyboard", nouns) > similarity(coco, "mouse", "cat", nouns)
    assert similarity(coco, "microwave", "toaster", nouns) == pytest.approx(1 / 3)
    assert similarity(ade, "palm", "tree", nouns) == pytest.approx(1 / 2)
    assert similarity(ade, "water", "lake", nouns) == pytest.approx(1 / 2)
    old = load_label_set("coco80", "published")
    assert similarity(old, "mouse", "cat", nouns) > similarity(old, "mouse", "keyboard", nouns)


def test_a_word_has_one_sense_in_all_sets_but_where_the_datasets_differ():
    senses = defaultdict(set)
    for name in SIZES:
        for label in load_label_set(name):
            plain = re.sub(r"-(other|merged|stuff)", "", label.name)
            senses[plain].add(label.synset or label.hypernym)
    assert {word for word, found in senses.items() if len(found) > 1} == {
        "wall",  # Cityscapes: a wall that stands alone
        "board",  # ADE20K 847: a plank
        "case",  # ADE20K: a display case
        "pot",  # ADE20K: a flowerpot
        "screen",  # ADE20K: for projection
        "stove",  # ADE20K: for cooking
        "tank",  # ADE20K: for storage
        "wire",  # ADE20K 847: for electricity
    }


def test_the_senses_of_ade847_were_found_as_the_table_says(nouns):
    tables = {name: {label.name: label.sense for label in load_label_set(name)} for name in SIZES}
    counts = defaultdict(int)
    for label, row in zip(load_label_set("ade847"), read_table("ade847"), strict=True):
        reason, senses = row["reason"], [sense.name for sense in nouns.senses(label.name)]
        if reason == "synonyms":
            words = {word.strip() for word in label.name.split(",")} | set(label.aliases)
            votes = Counter(sense.name for word in words for sense in nouns.senses(word))
            (first, most), *others = votes.most_common(2)
            assert first == label.synset and most >= 2 and all(votes[one] < most for one, _ in others), label
        elif reason == "only sense":
            assert senses == [label.synset], label
        elif reason == "gloss":
            assert label.synset in {sense.name for sense in nouns.senses(label.name.split(",")[0])}, label
        elif reason.startswith("as in "):
            assert label.sense == tables[reason.removeprefix("as in ")][label.name], label
            reason = reason if reason.endswith("ade150") else "as in another"
        else:
            assert len(reason) > 20 and label.sense, label
            reason = "a hypernym" if label.hypernym else "another word"
        counts[reason] += 1
    assert counts == {
        "synonyms": 207,
        "as in ade150": 75,
        "as in another": 116,
        "only sense": 172,
        "gloss": 191,
        "another word": 21,
        "a hypernym": 65,
    }
    page = (ROOT / "docs" / "label-tables.md").read_text(encoding="utf-8")
    assert all(re.search(rf"\b{count}\b", page.partition("## ADE20K 847")[2]) for count in counts.values())


def read_table(name):
    table = ROOT / "src" / "hardlook" / "similarity" / "tables" / f"{name}.csv"
    with table.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize(
    ("number", "name", "gloss"),
    [
        (0, "wall", "an architectural partition"),
        (97, "court", "a specially marked horizontal area"),
        (107, "booth", "small area set off by walls"),
        (122, "bar", "a counter where you can obtain food or drink"),
        (123, "stall", "a booth where articles are displayed for sale"),
        (177, "pitch", "a piece of land prepared for playing a game"),
        (207, "ring", "a platform usually marked off by ropes"),
        (252, "bag, handbag, pocketbook, purse", "a container used for carrying money"),
        (258, "crane", "lifts and moves heavy objects"),
        (371, "basket, basketball hoop, hoop", "horizontal circular metal hoop"),
        (500, "cat", "feline mammal"),
        (600, "centerpiece", "something placed at the center"),
        (662, "mouse", "a hand-operated electronic device"),
        (700, "plant pots", "a container in which plants are cultivated"),
        (846, "adding machine", "a calculator that performs simple arithmetic"),
    ],
)
def test_classes_of_ade847_by_train_id(number, name, gloss, nouns):
    label = load_label_set("ade847").labels[number]
    assert (label.id, label.name) == (number, name)
    assert nouns.sense(nouns.index(label.synset)).gloss.startswith(gloss)


def test_the_same_class_has_the_same_sense_in_both_sets_of_ade20k():
    full = {", ".join((label.name, *label.aliases)): label.sense for label in load_label_set("ade847")}
    part = {", ".join((label.name, *label.aliases)): label.sense for label in load_label_set("ade150")}
    both = full.keys() & part.keys()
    assert len(both) > 130 and all(full[name] == part[name] for name in both)


def test_every_difference_has_a_reason_and_nothing_else_has_one():
    for name in PUBLISHED:
        for row in read_table(name):
            same = (row["published"], "") == (row["synset"], row["hypernym"])
            assert same == (row["reason"] == ""), row
            assert "|" not in row["reason"]


def test_the_page_lists_exactly_the_differences():
    page = (ROOT / "docs" / "label-tables.md").read_text(encoding="utf-8")
    listed = defaultdict(list)
    for part in page.split("\n### ")[1:]:
        name, _, text = part.partition("\n")
        for line in text.splitlines():
            if line.startswith("| ") and not line.startswith("| label "):
                label, published, corrected, reason = (cell.strip() for cell in line.strip("|").split(" | "))
                listed[name].append((label, published.replace("`", ""), corrected.replace("`", ""), reason))
    expected = {
        name: [
            (one.label, one.published or "none", one.synset or f"under {one.hypernym}", one.reason)
            for one in find_differences(name)
        ]
        for name in PUBLISHED
    }
    assert dict(listed) == expected


def test_the_page_is_what_the_tool_writes():
    import importlib.util

    spec = importlib.util.spec_from_file_location("check_label_tables", ROOT / "tools" / "check_label_tables.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.fill(page) == page


@pytest.mark.parametrize("name", ["ade847", "coco171", "cityscapes19"])
def test_sets_without_published_senses_say_so(name):
    with pytest.raises(OptionError, match="no variant 'published'"):
        load_label_set(name, "published")
    with pytest.raises(OptionError, match="no published senses") as refusal:
        find_differences(name)
    assert "voc20" in refusal.value.remedy


def test_labels_that_share_a_synset():
    assert load_label_set("coco133").shared_synsets() == {
        "wall.n.01": ("wall-brick", "wall-stone", "wall-tile", "wall-wood", "wall-other-merged")
    }
    nodes = assign_synsets(load_label_set("coco133"), load_nouns()).nodes
    assert len(np.unique(nodes)) == 133 - 4


def test_words_are_any_strings_without_senses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = load_label_set("cat, the red barn,glorp")
    assert words.names == ("cat", "the red barn", "glorp") and words.ids.tolist() == [0, 1, 2]
    assert all(label.sense is None for label in words)
    with pytest.raises(OptionError, match="no label set and no file"):
        load_label_set("my,labels.csv")  # a file that is not there
    with pytest.raises(OptionError, match="no label set and no file"):
        load_label_set("cat")
