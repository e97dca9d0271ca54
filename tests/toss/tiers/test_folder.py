"""The built folder: reproducible bytes, a manifest that detects changes, and memberships read from lists."""

import json
from itertools import groupby

import pytest
from tier_lists import tier_lists

from hardlook.data.toss_pairs import Pair, locate_tier_list, write_pairs
from hardlook.errors import DataError, OptionError
from hardlook.toss.options import TossOptions
from hardlook.toss.tiers.folder import (
    SCHEMA,
    check_built_lists,
    check_output_folder,
    infer_support_partitions,
    list_changed_files,
    read_fold_classes,
    read_memberships,
    write_lists,
    write_manifest,
)
from hardlook.toss.tiers.rules import PARTITIONS, build_tiers, draw_similarity_pools
from hardlook.toss.units import list_units

CLASSES = ("cat", "dog", "cup", "car")

GENERAL = (Pair("1_abacus_1", "1_abacus_2", 3, -1),)


def build(seed, folds):
    class_of = {f"{n}_2007_{i:06d}": name for n, name in enumerate(CLASSES, start=1) for i in range(12 * n)}
    partitions = {token: PARTITIONS[place % 3] for place, token in enumerate(class_of)}
    tokens = {name: [token for token in class_of if class_of[token] == name] for name in CLASSES}
    similar = {
        pair: place % 3 == 0
        for pool in draw_similarity_pools(tokens, seed=seed).values()
        for place, pair in enumerate(pool)
    }
    return build_tiers(CLASSES, class_of, partitions, similar, folds=folds, seed=seed)


def write(folder, seed=0, folds=2, general=GENERAL, name="own"):
    built = build(seed, folds)
    files = write_lists(folder, built, general, name)
    write_manifest(folder, built, general, files, {"seed": seed})
    return built


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write(tmp_path / name, seed)
    paths = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert all((tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes() for path in paths)
    assert any((tmp_path / "a" / path).read_bytes() != (tmp_path / "c" / path).read_bytes() for path in paths)


def test_lists_read_back_as_pair_lists(tmp_path):
    built = write(tmp_path)
    found = {one.name: one for one in tier_lists(tmp_path, 1, 2, 3)}
    assert len(found) == 2 * 4 + 2 + 1
    for (tier, fold, split), pairs in built.lists.items():
        if tier == 1:
            read = found[f"tier1/split{fold}_q_{split}"].pairs
            assert [(pair.query, pair.support) for pair in read] == [(pair.query, pair.support) for pair in pairs]
    assert {pair.split for pair in found["tier2/split0_tier2"].pairs} == {"L0", "L1", "L2", "L3", "L4", "L5", "L6"}
    assert (tmp_path / "fixedsplits" / "own" / "split1_test.txt").is_file()


def test_the_manifest_counts_cells_and_names_what_is_not_filled(tmp_path):
    built = write(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(manifest["cells"]) == 4 * 16
    assert sum(cell["pairs"] for cell in manifest["cells"]) == sum(
        len(pairs) for (tier, _, _), pairs in built.lists.items() if tier == 1
    )
    parts = {one["part"]: one for one in manifest["unfilled"]}
    # No mask is hard_sal here, and a class of twelve images cannot give 48 identical pairs.
    assert parts["tier 1, fold 0, cat: hard_sal x hard_sal"]["got"] == 0
    assert parts["tier 2, cat: L0"] == {"part": "tier 2, cat: L0", "wanted": 48, "got": 12, "why": "cat has 12 images"}
    assert "tier 2, car: L0" not in parts


def test_a_second_build_leaves_no_list_of_the_first(tmp_path):
    write(tmp_path / "used", folds=4, name="four")
    write(tmp_path / "used", folds=2, general=())
    write(tmp_path / "fresh", folds=2, general=())
    used, fresh = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.txt")}
        for name in ("used", "fresh")
    )
    assert used == fresh and not (tmp_path / "used" / "fixedsplits" / "four").exists()
    assert list_changed_files(tmp_path / "used") == ()


def test_lists_that_no_build_wrote_are_not_touched(tmp_path):
    check_output_folder(tmp_path / "new")
    write(tmp_path / "built")
    check_output_folder(tmp_path / "built")
    (tmp_path / "built" / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match="13 pair lists") as caught:
        check_output_folder(tmp_path / "built")
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["../x", "a/b", "", "..", ".hidden", "/tmp/x", "a\\b"])
def test_the_name_of_fixed_lists_stays_in_its_folder(tmp_path, name):
    with pytest.raises(OptionError, match="names no folder"):
        write(tmp_path / "deep" / "out", name=name)
    assert not list(tmp_path.rglob("*.txt"))


def test_a_changed_or_missing_file_is_named(tmp_path):
    write(tmp_path)
    assert list_changed_files(tmp_path) == ()
    (tmp_path / "tiers" / "attribute" / "split0_q_easy_sal.txt").write_text("1_a 1_b\n")
    (tmp_path / "tiers" / "general" / "general_tier.txt").unlink()
    assert set(list_changed_files(tmp_path)) == {
        "tiers/attribute/split0_q_easy_sal.txt",
        "tiers/general/general_tier.txt",
    }
    with pytest.raises(DataError, match="manifest"):
        list_changed_files(tmp_path / "tiers")


def test_a_run_on_changed_lists_is_refused(tmp_path):
    write(tmp_path)
    check_built_lists(tmp_path)
    changed = tmp_path / "tiers" / "attribute" / "split0_q_easy_sal.txt"
    changed.write_text(changed.read_text() + "1_a 1_b\n")
    options = TossOptions(data={"pairs": tmp_path, "voc": tmp_path})
    with pytest.raises(DataError, match="changed after they were built: tiers/attribute/split0_q_easy_sal") as caught:
        list_units(options)
    assert "delete the manifest" in caught.value.remedy
    (tmp_path / "manifest.json").unlink()
    check_built_lists(tmp_path)


def memberships_write(folder, split, pairs, fold=0):
    rows = [Pair(query, support, 1, fold, split) for query, support in pairs]
    write_pairs(locate_tier_list(folder, 1, fold, split).path, rows)


@pytest.mark.real
def test_published_memberships_are_told_by_file_names_and_by_the_order_in_the_files(shared_data):
    root = shared_data / "reference" / "toss"
    expected = {}
    for fold in range(4):
        for partition in PARTITIONS:
            lines = (root / "data" / "tiers" / "attribute" / f"split{fold}_q_{partition}.txt").read_text().splitlines()
            rows = [tuple(line.split()) for line in lines]
            blocks = [list(own) for _, own in groupby(rows, key=lambda row: row[1].partition("_")[0])]
            assert len(blocks) == 20  # five classes, four times over
            for place, block in enumerate(blocks):
                expected.update({query: partition for query, _ in block})
                expected.update({support: PARTITIONS[place // 5] for _, support in block})
    found = read_memberships(root)
    assert dict(found.partitions) == expected and len(expected) == 17659
    assert not found.unknown and len(found.lists) == 16


def test_a_support_between_two_partitions_is_not_guessed(tmp_path):
    memberships_write(tmp_path, "easy_nsal", [("1_a", "1_a"), ("1_a", "1_z"), ("1_a", "1_b")])
    memberships_write(tmp_path, "easy_sal", [("1_b", "1_b")])
    found = read_memberships(tmp_path)
    assert dict(found.partitions) == {"1_a": "easy_nsal", "1_b": "easy_sal"} and found.unknown == ("1_z",)


def test_classes_are_not_mixed_and_tokens_are_sorted_by_number(tmp_path):
    memberships_write(tmp_path, "hard_sal", [("2_b", "2_b"), ("2_b", "2_z"), ("10_a", "10_a"), ("10_a", "10_z")])
    assert list(read_memberships(tmp_path).partitions) == ["2_b", "2_z", "10_a", "10_z"]


def test_a_support_alone_in_its_block_has_no_place():
    pairs = [Pair("1_a", "1_z", 1, 0, "easy_sal"), Pair("2_a", "2_a", 1, 0, "easy_sal")]
    assert infer_support_partitions([pairs], {"1_a": "easy_sal", "2_a": "easy_sal"}) == {}


def test_lists_that_disagree_or_are_not_there_are_refused(tmp_path):
    memberships_write(tmp_path, "easy_sal", [("1_a", "1_a")])
    memberships_write(tmp_path, "hard_sal", [("1_a", "1_a")])
    with pytest.raises(DataError, match="is hard_sal here and easy_sal in another list") as caught:
        read_memberships(tmp_path)
    assert caught.value.unit == "1_a"
    (tmp_path / "other" / "tiers").mkdir(parents=True)
    with pytest.raises(DataError, match="no lists of tier 1"):
        read_memberships(tmp_path / "other")


def test_classes_of_folds_are_those_of_the_manifest(tmp_path):
    assert read_fold_classes(tmp_path) == ()
    built = write(tmp_path)
    assert [set(classes) for classes in read_fold_classes(tmp_path)] == [set(classes) for classes in built.folds]
    (tmp_path / "manifest.json").write_text('{"schema": "another/1", "folds": [["cat"]]}')
    assert read_fold_classes(tmp_path) == ()
    (tmp_path / "manifest.json").write_text("{")
    assert read_fold_classes(tmp_path) == ()
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": SCHEMA}))
    with pytest.raises(DataError, match="not a manifest of built tiers"):
        read_fold_classes(tmp_path)
