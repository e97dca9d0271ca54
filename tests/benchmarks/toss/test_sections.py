"""What the report shows can be made from any records that a run may leave."""

import numpy as np
import polars as pl
import pytest

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
