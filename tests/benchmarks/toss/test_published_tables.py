"""Published splits, levels and folds stand beside ours, cell for cell as printed."""

import csv

import pytest

from hardlook.benchmarks.toss.published_tables import fixed_table, general_table, level_table, split_table
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import DotChart
from hardlook.runs.in_memory import Rehearsal

NAMES = {
    "easy, salient": "easy+salient", "easy, not salient": "easy+non-salient", "hard, salient": "hard+salient",
    "hard, not salient": "hard+non-salient",
}  # fmt: skip
OURS = Scorecard(
    "toss", "1", "mine",
    (
        Score("miou", 0.11, 1, slice={"split": "hard_sal"}, comparable="not comparable: so"),
        Score("miou", 0.12, 1, slice={"split": "hard_sal", "fold": "2"}),
        Score("miou", 0.21, 1, slice={"level": "L4"}),
        Score("miou", 0.22, 1, slice={"level": "L2"}),
        Score("gs", 0.31, 1),
        Score("miou", 0.41, 1),
        Score("miou", 0.42, 1, slice={"fold": "3"}),
    ),
)  # fmt: skip


def cells(table):
    """{(what, fold): {column: value}}."""
    return {row[:2]: dict(zip(table.columns[2:], row[2:], strict=True)) for row in table.rows}


def printed(shared_data, name):
    with (shared_data / "reference" / "toss" / "published" / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def check(row, found, method, unit=1):
    assert found["all"][method] == pytest.approx(float(row["mean"]) / unit)
    for fold in range(4):
        assert found[f"fold {fold}"][method] == pytest.approx(float(row[f"fold{fold + 1}"]) / unit)


def of(table, what):
    return {fold: values for (name, fold), values in cells(table).items() if name == what}


@pytest.mark.real
def test_published_columns_are_the_printed_ones(shared_data):
    split, level = split_table(OURS), level_table(OURS)
    back = {text: name for name, text in NAMES.items()} | {"LCA": "LCA", "HCA": "HCA"}
    rows = printed(shared_data, "supp_table2_tier1.csv")
    for row in rows:
        check(row, of(split, back[row["split"]]), row["method"])
    for row in printed(shared_data, "supp_table3_tier2.csv"):
        check(row, of(level, row["level"]), row["method"])
    for row in printed(shared_data, "supp_table4_tier3.csv"):
        check(row, of(general_table(OURS), "GS"), row["method"])
    assert len(rows) == 30


def test_our_values_stand_in_their_own_column():
    split, level, fixed = cells(split_table(OURS)), cells(level_table(OURS)), cells(fixed_table(OURS))
    assert (split["hard, salient", "all"]["mine"], split["hard, salient", "fold 2"]["mine"]) == (0.11, 0.12)
    assert split["hard, salient", "fold 1"]["mine"] is None
    assert level["L4", "all"]["mine"] == 0.21
    assert (level["L2", "all"]["mine"], level["L2", "all"]["HSNet"]) == (0.22, None)
    # A row that has neither a number of ours nor a printed one says nothing.
    assert ("L3", "all") not in level and ("L2", "fold 1") not in level
    assert cells(general_table(OURS))["GS", "all"]["mine"] == 0.31
    assert (fixed["mIoU", "all"]["mine"], fixed["mIoU", "fold 3"]["mine"]) == (0.41, 0.42)
    # Table 1 of the paper, as the specification quotes its means.
    assert [fixed["mIoU", "all"][name] for name in ("Baseline", "RPMM", "PFENet")] == [0.5539, 0.4973, 0.5501]
    assert "Not comparable: so." in split_table(OURS).caption


@pytest.mark.parametrize(
    ("given", "tables"),
    [
        ({}, {"Tier 1", "Tier 2", "Tier 3"}),
        ({"fixed": True}, {"Fixed pairs"}),
    ],
)
def test_reports_show_the_tables_and_the_papers_dots(given, tables):
    rehearsal = Rehearsal("toss", {"scenes": 24, "resamples": 0, **given})
    records = rehearsal.records("planted-one-shot")
    card = rehearsal.benchmark.score(records, rehearsal.options)
    blocks = [block for section in rehearsal.benchmark.sections(records, card) for block in section.blocks]
    assert {block.title for block in blocks} >= {f"{name} beside the published models" for name in tables}
    dotted = [
        one for one in blocks if isinstance(one, DotChart) and "the paper's Baseline" in {dot.group for dot in one.rows}
    ]
    assert len(dotted) == (0 if given else 2)
