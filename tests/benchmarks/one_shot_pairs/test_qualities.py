"""Single pairs: their credit and IoU by plain loops, and what is said about them."""

import math

import one_shot_oracle as oracle
import polars as pl
import pytest
from toss_records import frame_of, row

from hardlook.benchmarks.bias_saliency.benchmark import BIAS_SALIENCY
from hardlook.benchmarks.bias_support.benchmark import BIAS_SUPPORT
from hardlook.benchmarks.toss.benchmark import TOSS
from hardlook.benchmarks.toss.options import TossOptions
from hardlook.contract.benchmark import JudgesUnits
from hardlook.runs.in_memory import Rehearsal

GIVEN = {
    "toss": {"scenes": 24, "resamples": 0},
    "bias-support": {"scenes": 24, "resamples": 0, "pairs_a_class": 5},
    "bias-saliency": {"scenes": 24, "resamples": 0, "pairs_a_class": 5},
}


def is_spurious(record):
    return record.get("split") in ("L4", "L5", "L6") or record.get("condition") in (
        "other-class", "no-mask", "no-image", "other-class-no-mask",
    )  # fmt: skip


@pytest.fixture(scope="module", params=GIVEN)
def run(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        rehearsal = Rehearsal(request.param, GIVEN[request.param])
        faults = {"saliency": 0.5, "support_blind": 0.5, "ragged": 0.7}
        yield rehearsal.benchmark, rehearsal.options, rehearsal.records("planted-one-shot", faults)


@pytest.mark.parametrize("void", ["ignored", "background"])
def test_qualities_are_those_of_plain_loops(run, void):
    benchmark, options, records = run
    assert isinstance(benchmark, JudgesUnits)
    records = records.sample(fraction=1.0, shuffle=True, seed=1)
    found = benchmark.qualities(records, options.model_copy(update={"reading": {"void": void}}))
    names = [quality.name for quality in benchmark.card.qualities]
    assert found.columns == ["unit", *names]
    assert set(found.dtypes[1:]) == {pl.Float64}
    for record, told in zip(records.to_dicts(), found.to_dicts(), strict=True):
        iou = oracle.iou([record], void)
        iou = math.nan if iou is None else iou
        expected = {"unit": record["unit"], "iou": iou, "credit": 1 - iou if is_spurious(record) else iou}
        assert told == pytest.approx({name: expected[name] for name in ("unit", *names)}, nan_ok=True)


def test_the_mean_iou_of_pairs_is_the_score_of_that_name(run):
    benchmark, options, records = run
    by = "condition" if "condition" in records.columns else "split"
    joined = records.join(benchmark.qualities(records, options), on="unit")
    checked = 0
    for score in benchmark.score(records, options).scores:
        if score.name == "pair-iou" and set(score.slice) & {"split", "level", "support"}:
            [value] = score.slice.values()
            ious = joined.filter((pl.col(by) == value) & pl.col("iou").is_not_nan())["iou"]
            assert ious.mean() == pytest.approx(score.value)
            checked += 1
    assert checked or benchmark is BIAS_SALIENCY


def test_finding_what_the_support_does_not_show_is_the_worst_answer():
    cells = [("L4", 30), ("L4", 0), ("L0", 30), ("L0", 0)]
    rows = [
        row(place, 2, 0, level, "cat", "a", [hits, 0, 30 - hits, 9, 0, 0]) for place, (level, hits) in enumerate(cells)
    ]
    found = TOSS.qualities(frame_of(rows), TossOptions())
    assert found["credit"].to_list() == [0, 1, 1, 0]
    assert found["iou"].to_list() == [1, 0, 1, 0]


def test_pairs_that_are_not_scored_and_pairs_of_nothing_have_no_quality():
    rows = [
        row(0, 3, -1, "", "cat", "a", [5, 5, 0, 0, 0, 0], mixed=True),
        row(1, 2, 0, "L6", "cat", "a", [0, 0, 0, 9, 3, 0]),
    ]
    kept = TOSS.qualities(frame_of(rows), TossOptions())
    dropped = TOSS.qualities(frame_of(rows), TossOptions(reading={"mixed": "ours"}))
    assert kept["iou"][0] == 0.5
    assert dropped["iou"].is_nan().to_list() == dropped["credit"].is_nan().to_list() == [True, True]
    # Void that is predicted counts as wrong in the other reading: then there is something that was found.
    assert TOSS.qualities(frame_of(rows), TossOptions(reading={"void": "background"}))["credit"][1] == 1


def test_every_record_has_a_sentence_with_its_iou(run):
    benchmark, options, records = run
    ious = benchmark.qualities(records, options)["iou"]
    for record, iou in zip(records.to_dicts(), ious, strict=True):
        said = benchmark.caption(record)
        assert said.startswith(f"The mask for {record['class']} (") and said.endswith(".")
        assert f"IoU of {iou:.3f}" in said if record["predicted"] else "is empty" in said


def toss_words(tier, split, counts, **more):
    [record] = frame_of([row(0, tier, 0, split, "cat", "a", counts, **more)]).to_dicts()
    return TOSS.caption(record)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            toss_words(1, "hard_nsal", [10, 10, 20, 0, 0, 0], salient=(30, 20, 5, 5)),
            "The mask for cat (hard, not salient) has an IoU of 0.250 and of 0.500 with what is salient.",
        ),
        (
            toss_words(1, "easy_sal", [10, 10, 0, 0, 20, 0]),
            "The mask for cat (easy, salient) has an IoU of 0.500 (0.250 with void).",
        ),
        (
            toss_words(2, "L4", [10, 10, 0, 0, 0, 0]),
            "The mask for cat (L4 another class) has an IoU of 0.500 with what the support does not show: 0 is right.",
        ),
        (
            toss_words(2, "L6", [0, 10, 0, 0, 0, 0]),
            "The mask for cat (L6 black image, no mask) is empty: right, since the support does not show the class.",
        ),
        (toss_words(2, "L0", [0, 10, 0, 5, 0, 0]), "The mask for cat (L0 the query itself) is empty."),
        (
            toss_words(3, "", [0, 0, 0, 5, 0, 0], mixed=True),
            "The mask for cat (tier 3, query and support of two classes) is empty, and there is nothing to find.",
        ),
        (
            toss_words(0, "", [0, 0, 0, 5, 3, 0]),
            "The mask for cat (fixed pair of fold 0) lies where the truth is left open, and there is nothing to find.",
        ),
    ],
)
def test_pairs_of_toss_in_words(said, words):
    assert said == words


def test_pairs_of_the_studies_in_words():
    counts = {"class": "cat", "intersection": 1, "predicted": 2, "truth": 3, "predicted_void": 0}
    asked = {"condition": "suppressed", "salience": 0.25, "salient": 2, "predicted_salient": 1}
    assert BIAS_SUPPORT.caption({**counts, "condition": "no-mask"}) == (
        "The mask for cat (support: the right image, no mask) has an IoU of 0.250 with what the support does not show: "
        "0 is right."
    )
    assert BIAS_SUPPORT.caption({**counts, "condition": "correct"}) == (
        "The mask for cat (support: the right class and its mask) has an IoU of 0.250."
    )
    assert BIAS_SALIENCY.caption({**counts, **asked}) == (
        "The mask for cat (salient region blurred, target salient by 0.25) has an IoU of 0.250 and of 0.333 with what "
        "is salient."
    )
