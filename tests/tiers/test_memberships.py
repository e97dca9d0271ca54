"""Memberships read from tier-1 lists: the published ones whole, and what cannot be told."""

from itertools import groupby

import pytest

from hardlook.data.toss_pairs import Pair, pair_file, write_pairs
from hardlook.errors import DataError
from hardlook.tiers.memberships import placed_supports, read_memberships
from hardlook.tiers.partitions import PARTITIONS


def write(folder, split, pairs, fold=0):
    rows = [Pair(query, support, 1, fold, split) for query, support in pairs]
    write_pairs(pair_file(folder, 1, fold, split).path, rows)


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
    assert not found.unplaced and len(found.lists) == 16


def test_a_support_between_two_partitions_is_not_guessed(tmp_path):
    write(tmp_path, "easy_nsal", [("1_a", "1_a"), ("1_a", "1_z"), ("1_a", "1_b")])
    write(tmp_path, "easy_sal", [("1_b", "1_b")])
    found = read_memberships(tmp_path)
    assert dict(found.partitions) == {"1_a": "easy_nsal", "1_b": "easy_sal"} and found.unplaced == ("1_z",)


def test_classes_are_not_mixed_and_tokens_are_sorted_by_number(tmp_path):
    write(tmp_path, "hard_sal", [("2_b", "2_b"), ("2_b", "2_z"), ("10_a", "10_a"), ("10_a", "10_z")])
    assert list(read_memberships(tmp_path).partitions) == ["2_b", "2_z", "10_a", "10_z"]


def test_a_support_alone_in_its_block_has_no_place():
    pairs = [Pair("1_a", "1_z", 1, 0, "easy_sal"), Pair("2_a", "2_a", 1, 0, "easy_sal")]
    assert placed_supports([pairs], {"1_a": "easy_sal", "2_a": "easy_sal"}) == {}


def test_lists_that_disagree_or_are_not_there_are_refused(tmp_path):
    write(tmp_path, "easy_sal", [("1_a", "1_a")])
    write(tmp_path, "hard_sal", [("1_a", "1_a")])
    with pytest.raises(DataError, match="is hard_sal here and easy_sal in another list") as caught:
        read_memberships(tmp_path)
    assert caught.value.unit == "1_a"
    (tmp_path / "other" / "tiers").mkdir(parents=True)
    with pytest.raises(DataError, match="no lists of tier 1"):
        read_memberships(tmp_path / "other")
