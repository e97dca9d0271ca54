"""The built folder: the same inputs give the same bytes, the lists read back, and the manifest notices a change."""

import json
from dataclasses import replace

import pytest
from tier_lists import tier_lists

from hardlook.data.toss_pairs import Pair
from hardlook.errors import DataError, OptionError
from hardlook.tiers.built_folder import changed_files, refuse_other_lists, write_lists, write_manifest
from hardlook.tiers.built_tiers import TierInputs, build_tiers
from hardlook.tiers.partitions import PARTITIONS
from hardlook.tiers.support_cognizance import similarity_pool

CLASSES = ("cat", "dog", "cup", "car")
GENERAL = (Pair("1_abacus_1", "1_abacus_2", 3, -1),)


def inputs(seed=0):
    class_of = {f"{n}_2007_{i:06d}": name for n, name in enumerate(CLASSES, start=1) for i in range(12 * n)}
    partitions = {token: PARTITIONS[place % 3] for place, token in enumerate(class_of)}
    tokens = {name: [token for token in class_of if class_of[token] == name] for name in CLASSES}
    similar = {
        pair: place % 3 == 0 for pool in similarity_pool(tokens, seed=seed).values() for place, pair in enumerate(pool)
    }
    return TierInputs(CLASSES, class_of, partitions, similar, folds=2, seed=seed)


def write(folder, seed=0, folds=2, general=GENERAL, name="own"):
    built = build_tiers(replace(inputs(seed), folds=folds))
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
    assert changed_files(tmp_path / "used") == ()


def test_lists_that_no_build_wrote_are_not_touched(tmp_path):
    refuse_other_lists(tmp_path / "new")
    write(tmp_path / "built")
    refuse_other_lists(tmp_path / "built")
    (tmp_path / "built" / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match="13 pair lists") as caught:
        refuse_other_lists(tmp_path / "built")
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["../x", "a/b", "", "..", ".hidden", "/tmp/x", "a\\b"])
def test_the_name_of_fixed_lists_stays_in_its_folder(tmp_path, name):
    with pytest.raises(OptionError, match="names no folder"):
        write(tmp_path / "deep" / "out", name=name)
    assert not list(tmp_path.rglob("*.txt"))


def test_a_changed_or_missing_file_is_named(tmp_path):
    write(tmp_path)
    assert changed_files(tmp_path) == ()
    (tmp_path / "tiers" / "attribute" / "split0_q_easy_sal.txt").write_text("1_a 1_b\n")
    (tmp_path / "tiers" / "general" / "general_tier.txt").unlink()
    assert set(changed_files(tmp_path)) == {
        "tiers/attribute/split0_q_easy_sal.txt",
        "tiers/general/general_tier.txt",
    }
    with pytest.raises(DataError, match="manifest"):
        changed_files(tmp_path / "tiers")
