"""The report of built tiers: its tables hold what was built, its sentences what was not."""

from dataclasses import replace

import pytest

from hardlook.data.toss_pairs import LEVELS
from hardlook.harness.sections import Table
from hardlook.toss.tiers.attributes import AttributeRow, FailedImage
from hardlook.toss.tiers.build_report import BuiltReport, build_sections
from hardlook.toss.tiers.rules import PARTITIONS, build_tiers

# Two classes in two folds: three cats of two partitions, one dog, and a dog without a partition.
CLASS_OF = {"1_a": "cat", "1_b": "cat", "1_c": "cat", "2_d": "dog", "2_e": "dog"}
PARTITION_OF = {"1_a": "easy_sal", "1_b": "easy_sal", "1_c": "hard_nsal", "2_d": "easy_nsal"}
ROWS = [AttributeRow(token, None, 0.8, 0.1, 0.5, 0.6, 2, 0.0, name, token[2:]) for token, name in CLASS_OF.items()]


@pytest.fixture(scope="module")
def report():
    built = build_tiers(("cat", "dog"), CLASS_OF, PARTITION_OF, {("1_a", "1_b"): True}, folds=2)
    return BuiltReport(built, ROWS, PARTITION_OF, {"cat": [0.25, 0.5]}, 0.375, {}, (), (), 1)


def sections_of(report, **changes):
    return {section.title: section for section in build_sections(replace(report, **changes))}


def table(section, title):
    [found] = [block for block in section.blocks if isinstance(block, Table) and block.title == title]
    return found.rows


def test_the_lists_with_their_pairs_and_the_folds(report):
    section = sections_of(report)["The lists"]
    names = {0: "fixed: random pairs", 1: "tier 1: query complexity", 2: "tier 2: support cognizance"}
    expected = [
        (names[tier], fold, split or None, len(pairs)) for (tier, fold, split), pairs in report.built.lists.items()
    ]
    assert sorted(table(section, "Pairs per list"), key=str) == sorted(expected, key=str)
    assert [row[:2] for row in table(section, "Pairs per list")] == sorted(row[:2] for row in expected)
    assert table(section, "Folds") == [(0, "cat"), (1, "dog")]
    assert section.text == "5 masks are in the lists' classes, 0 images failed, 0 masks have no row in the table."
    more = sections_of(report, general={"fox": 45, "owl": 20})["The lists"]
    assert table(more, "Pairs per list")[-1] == ("tier 3: generalisation", None, None, 65)


def test_masks_are_counted_by_class_and_partition(report):
    section = sections_of(report)["Partitions"]
    heat_map, scatter = section.blocks
    counts = {
        name: dict(zip(PARTITIONS, row, strict=True)) for name, row in zip(heat_map.rows, heat_map.values, strict=True)
    }
    assert counts["cat"] == {"easy_sal": 2, "hard_nsal": 1, "easy_nsal": 0, "hard_sal": 0}
    assert counts["dog"] == {"easy_sal": 0, "hard_nsal": 0, "easy_nsal": 1, "hard_sal": 0}
    assert {spot.label: spot.group for spot in scatter.spots if spot.group} == PARTITION_OF
    assert section.text.startswith("A mask is easy if the supervised model finds it (IoU above .75)")
    given = sections_of(report, given_partitions=True)["Partitions"].text
    assert given == "A mask's partition is that of the lists that were given."


def test_cells_are_pairs_of_a_query_and_a_support_partition(report):
    [heat_map] = sections_of(report)["Tier 1: the cells"].blocks
    counts = dict(zip(heat_map.rows, heat_map.values, strict=True))
    cats, dogs = (dict(zip(heat_map.columns, counts[name], strict=True)) for name in ("cat", "dog"))
    # Two queries and two supports, the query itself among them.
    assert {cell: count for cell, count in cats.items() if count} == {"es-es": 4, "es-hn": 2, "hn-es": 2, "hn-hn": 1}
    assert {cell: count for cell, count in dogs.items() if count} == {"en-en": 1}
    assert len(heat_map.columns) == 16 and heat_map.columns[:2] == ["en-en", "en-es"]


def test_levels_and_cosines_where_there_are_any(report):
    counts, cosines = sections_of(report)["Tier 2: the levels"].blocks
    assert [dict(zip(LEVELS, row, strict=True)) for row in counts.values] == list(report.built.levels.values())
    assert cosines.groups[0] == ("all classes", [0.25, 0.5]) and dict(cosines.groups)["cat"] == [0.25, 0.5]
    assert "Above the mean, 0.375, a pair is similar (L2)." in cosines.caption
    [alone] = sections_of(report, cosines={})["Tier 2: the levels"].blocks
    assert alone == counts
    assert "Tier 2: the levels" not in sections_of(report, built=replace(report.built, levels={}))


def test_unlike_classes_that_stay_and_that_were_dropped(report):
    assert "Tier 3: unlike classes" not in sections_of(report)
    section = sections_of(report, general={"fox": 45, "owl": 20}, dropped=["wolf"])["Tier 3: unlike classes"]
    assert section.text.startswith("2 classes stay, 1 were dropped")
    assert list(map(tuple, table(section, "Pairs per class"))) == [("fox", 45), ("owl", 20)]
    assert table(section, "Dropped") == [("wolf",)]
    assert "Tier 3: unlike classes" in sections_of(report, dropped=["wolf"])


def test_what_could_not_be_filled_is_said(report):
    section = sections_of(report)["What could not be filled"]
    assert section.text == "1 masks lack a supervised IoU or a salience and have no partition."
    lists = sections_of(report, given_partitions=True)["What could not be filled"]
    assert lists.text == "1 masks are in none of the lists given and have no partition."
    whole = sections_of(report, unmeasured=0)["What could not be filled"]
    assert whole.text == "Every measured mask is in a partition."
    unfilled = [(one.part, one.wanted, one.got, one.why) for one in report.built.unfilled]
    assert unfilled and table(section, "Fewer pairs than wanted") == unfilled
    assert [block.title for block in section.blocks] == ["Fewer pairs than wanted"]


def test_failed_images_and_masks_without_a_row_are_listed(report):
    failed = sections_of(report, failures=[FailedImage("b", "cut off")], without_row=["1_x", "1_y"])
    section = failed["What could not be filled"]
    assert table(section, "Images that failed") == [("b", "cut off")]
    assert table(section, "Masks without a row") == [("1_x",), ("1_y",)]
    counted = "5 masks are in the lists' classes, 1 images failed, 2 masks have no row in the table."
    assert failed["The lists"].text == counted


def test_attributes_come_by_partition_and_by_class(report):
    sections = sections_of(report)
    by_partition, by_class = (sections[f"Attributes by {name}"].blocks[0] for name in ("partition", "class"))
    assert {name: len(values) for name, values in by_partition.groups if values} == {
        "all masks": 5,
        "easy_nsal": 1,
        "easy_sal": 2,
        "hard_nsal": 1,
    }
    assert {name: len(values) for name, values in by_class.groups} == {"all masks": 5, "cat": 3, "dog": 2}
    assert "Attributes by class" not in sections_of(report, rows=[])
