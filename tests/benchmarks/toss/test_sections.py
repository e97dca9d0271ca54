"""What the report shows can be made from any records that a run may leave."""

import numpy as np
import polars as pl
import pytest

from hardlook.benchmarks.toss.score_tables import fold_tables
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Gallery
from hardlook.runs.in_memory import Rehearsal

FAULTS = {"saliency": 0.5, "support_blind": 0.5}


@pytest.fixture(scope="module")
def rehearsal():
    return Rehearsal("toss", {"scenes": 24, "resamples": 20})


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
    sections = rehearsal.benchmark.sections(part, card)
    assert sections
    titles = [section.title for section in sections]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("benchmark", ["bias-support", "bias-saliency"])
def test_the_studies_have_sections(benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    rehearsal = Rehearsal(benchmark, {"scenes": 24, "resamples": 20, "pairs_a_class": 5})
    for model in ("planted-one-shot", "empty"):
        records = rehearsal.records(model)
        card = rehearsal.benchmark.score(records, rehearsal.options)
        assert rehearsal.benchmark.sections(records, card)


GALLERIES = {
    "Salient and missed": (("easy_sal", "hard_sal"), False),
    "Not salient and missed": (("easy_nsal", "hard_nsal"), False),
    "Not salient and found": (("easy_nsal", "hard_nsal"), True),
    "Found without being shown": (("L4", "L5", "L6"), True),
    "Shown itself and missed": (("L0",), False),
}


def shown_galleries(rehearsal, records):
    card = rehearsal.benchmark.score(records, rehearsal.options)
    blocks = [block for section in rehearsal.benchmark.sections(records, card) for block in section.blocks]
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

    assert fold_tables(card([0]), ("lca", "hca")) == ()
    [first], [second] = (fold_tables(card([0, 1]), names) for names in (("lca", "hca"), ("scs",)))
    assert (first.title, second.title) == ("LCA and HCA by fold", "SCS by fold")
    assert [row[0] for row in first.rows] == ["fold 0", "fold 1"]
