"""The report of TOSS: published cells as printed, and sections from any records that a run may leave."""

import csv

import numpy as np
import polars as pl
import pytest

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import DotChart, Gallery
from hardlook.toss.report import (
    build_fixed_table,
    build_fold_tables,
    build_general_table,
    build_level_table,
    build_split_table,
)

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
    split, level = build_split_table(OURS), build_level_table(OURS)
    back = {text: name for name, text in NAMES.items()} | {"LCA": "LCA", "HCA": "HCA"}
    rows = printed(shared_data, "supp_table2_tier1.csv")
    for row in rows:
        check(row, of(split, back[row["split"]]), row["method"])
    for row in printed(shared_data, "supp_table3_tier2.csv"):
        check(row, of(level, row["level"]), row["method"])
    for row in printed(shared_data, "supp_table4_tier3.csv"):
        check(row, of(build_general_table(OURS), "GS"), row["method"])
    assert len(rows) == 30


def test_our_values_stand_in_their_own_column():
    split, level, fixed = cells(build_split_table(OURS)), cells(build_level_table(OURS)), cells(build_fixed_table(OURS))
    assert (split["hard, salient", "all"]["mine"], split["hard, salient", "fold 2"]["mine"]) == (0.11, 0.12)
    assert split["hard, salient", "fold 1"]["mine"] is None
    assert level["L4", "all"]["mine"] == 0.21
    assert (level["L2", "all"]["mine"], level["L2", "all"]["HSNet"]) == (0.22, None)
    # A row that has neither a number of ours nor a printed one says nothing.
    assert ("L3", "all") not in level and ("L2", "fold 1") not in level
    assert cells(build_general_table(OURS))["GS", "all"]["mine"] == 0.31
    assert (fixed["mIoU", "all"]["mine"], fixed["mIoU", "fold 3"]["mine"]) == (0.41, 0.42)
    # Table 1 of the paper, as the specification quotes its means.
    assert [fixed["mIoU", "all"][name] for name in ("Baseline", "RPMM", "PFENet")] == [0.5539, 0.4973, 0.5501]
    assert "Not comparable: so." in build_split_table(OURS).caption


@pytest.mark.parametrize(
    ("given", "tables"),
    [
        ({}, {"Tier 1", "Tier 2", "Tier 3"}),
        ({"fixed": True}, {"Fixed pairs"}),
    ],
)
def test_reports_show_the_tables_and_the_papers_dots(given, tables):
    rehearsal = InMemoryRun("toss", {"scenes": 24, "resamples": 0, **given})
    records = rehearsal.records("planted-one-shot")
    card = rehearsal.benchmark.score(records, rehearsal.options)
    blocks = [block for section in rehearsal.benchmark.report(records, card) for block in section.blocks]
    assert {block.title for block in blocks} >= {f"{name} beside the published models" for name in tables}
    dotted = [
        one for one in blocks if isinstance(one, DotChart) and "the paper's Baseline" in {dot.group for dot in one.rows}
    ]
    assert len(dotted) == (0 if given else 2)


FAULTS = {"saliency": 0.5, "support_blind": 0.5}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("toss", {"scenes": 24, "resamples": 20})


@pytest.fixture(scope="module")
def records(rehearsal):
    return rehearsal.records("planted-one-shot", FAULTS)


CUTS = {
    "everything": pl.lit(True),
    "tier 1": pl.col("tier") == 1,
    "tier 2": pl.col("tier") == 2,
    "tier 3": pl.col("tier") == 3,
    "one split": pl.col("split") == "hard_nsal",
    "one level": pl.col("split") == "L5",
    "salient targets only": pl.col("split").str.ends_with("_sal"),
    "no spurious supports": ~pl.col("split").is_in(["L4", "L5", "L6"]),
}


@pytest.mark.parametrize("cut", CUTS)
def test_any_part_of_a_run_has_sections(rehearsal, records, cut):
    part = records.filter(CUTS[cut])
    card = rehearsal.benchmark.score(part, rehearsal.options)
    sections = rehearsal.benchmark.report(part, card)
    assert sections
    titles = [section.title for section in sections]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("benchmark", ["bias-support", "bias-saliency"])
def test_the_studies_have_sections(benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    rehearsal = InMemoryRun(benchmark, {"scenes": 24, "resamples": 20, "pairs_a_class": 5})
    for model in ("planted-one-shot", "empty"):
        records = rehearsal.records(model)
        card = rehearsal.benchmark.score(records, rehearsal.options)
        assert rehearsal.benchmark.report(records, card)


GALLERIES = {
    "Salient and missed": (("easy_sal", "hard_sal"), False),
    "Not salient and missed": (("easy_nsal", "hard_nsal"), False),
    "Not salient and found": (("easy_nsal", "hard_nsal"), True),
    "Found without being shown": (("L4", "L5", "L6"), True),
    "Shown itself and missed": (("L0",), False),
}


def shown_galleries(rehearsal, records):
    card = rehearsal.benchmark.score(records, rehearsal.options)
    blocks = [block for section in rehearsal.benchmark.report(records, card) for block in section.blocks]
    return {block.title: [example.unit for example in block.examples] for block in blocks if isinstance(block, Gallery)}


def test_galleries_show_what_their_titles_say(rehearsal, records):
    known = records.join(rehearsal.benchmark.qualities(records, rehearsal.options), on="unit")
    known = {row["unit"]: row for row in known.to_dicts()}
    shown = shown_galleries(rehearsal, records)
    assert {"Not salient and missed", "Not salient and found", "Found without being shown"} <= set(shown)
    for title, units in shown.items():
        splits, found = GALLERIES[title]
        rows = [known[unit] for unit in units]
        assert {row["split"] for row in rows} <= set(splits)
        assert all((row["iou"] >= 0.5) == found for row in rows)
        ious = [row["iou"] for row in rows]
        assert ious == sorted(ious, reverse=found)
        assert len({row["query"] for row in rows}) == len(rows)


def test_a_model_without_fault_has_nothing_missed_and_nothing_found_unshown(rehearsal):
    assert set(shown_galleries(rehearsal, rehearsal.records("planted-one-shot"))) == {"Not salient and found"}


def test_pictures_show_support_truth_and_prediction(rehearsal):
    [unit, *_] = rehearsal.prepared[0].units
    [record] = rehearsal.benchmark.evaluate([unit], _Everything())
    support, query, prediction = rehearsal.benchmark.pictures(unit, record)
    assert (support.mask == unit.payload.support[0].mask).all()
    assert (query.mask == unit.payload.truth.mask).all()
    assert prediction.mask.all()


class _Everything:
    def segment_queries(self, queries, supports):
        return [np.ones(query.shape[:2], bool) for query in queries]


def test_one_fold_has_no_table_of_folds_and_several_have_one_each_score_names():
    def card(folds):
        scores = [Score(name, 0.5, 9, slice={"fold": str(fold)}) for name in ("lca", "hca", "scs") for fold in folds]
        return Scorecard("toss", "1", "m", tuple(scores))

    assert build_fold_tables(card([0]), ("lca", "hca")) == ()
    [first], [second] = (build_fold_tables(card([0, 1]), names) for names in (("lca", "hca"), ("scs",)))
    assert (first.title, second.title) == ("LCA and HCA by fold", "SCS by fold")
    assert [row[0] for row in first.rows] == ["fold 0", "fold 1"]
