"""What masks follow where the target is not salient: measured, counted, scored and described."""

import numpy as np
import pytest
from one_shot_folders import write_one_shot_folder

from hardlook.errors import OptionError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.stats.intervals import Interval
from hardlook.models.planted.saliency import PlantedSaliency
from hardlook.toss.benchmark import TOSS
from hardlook.toss.evaluation import count_salient_pixels
from hardlook.toss.options import TossOptions
from hardlook.toss.salience_following import describe_following

ASKED = ("salient", "predicted_salient", "truth_salient", "found_salient")

FOLLOWING = {"follows-truth", "follows-salience", "salience-lead", "covers-target", "covers-salience", "salience-pull"}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("toss", {"scenes": 64, "resamples": 100})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_one_shot_folder(tmp_path_factory.mktemp("files"), folds=(1,))


def tier_one_words(rehearsal, card, records):
    [section] = [one for one in rehearsal.benchmark.report(records, card) if one.title.startswith("Tier 1")]
    return section.text, [block.title for block in section.blocks]


def answered(rehearsal, **dials):
    records = rehearsal.records("planted-one-shot", dials)
    return rehearsal.benchmark.score(records, rehearsal.options), records


def test_records_count_the_pixels_that_the_saliency_model_takes(rehearsal):
    records = {row["unit"]: row for row in rehearsal.records("planted-one-shot", {"ragged": 1.0}).to_dicts()}
    eye, checked = PlantedSaliency(), 0
    for unit in (unit for batch in rehearsal.prepared[::7] for unit in batch.units):
        row = records[unit.id]
        if row["tier"] != 1:
            assert [row[name] for name in ASKED] == [-1, -1, -1, -1]
            continue
        salient = eye.saliency([unit.payload.image])[0] > 0.5
        assert row["salient"] == np.count_nonzero(salient)
        assert row["truth_salient"] == np.count_nonzero(salient & unit.payload.truth.mask)
        assert 0 <= row["found_salient"] <= min(row["truth_salient"], row["intersection"])
        assert row["found_salient"] <= row["predicted_salient"] <= min(row["salient"], row["predicted"])
        checked += 1
    assert checked > 20


def test_a_model_without_fault_follows_the_target(rehearsal):
    card, records = answered(rehearsal)
    assert card.get("follows-truth").value == card.get("non-salient").value == 1
    assert (card.get("covers-target").value, card.get("salience-lead").interval.high < 0) == (1, True)
    text, titles = tier_one_words(rehearsal, card, records)
    assert "This model follows the target rather than salience" in text
    assert "Targets that are not salient: what the masks go with" in titles


def test_a_model_that_follows_salience_is_told_so(rehearsal):
    card, records = answered(rehearsal, saliency=1.0)
    assert card.get("follows-salience").value == pytest.approx(1, abs=0.1)
    lead = card.get("salience-lead")
    assert lead.interval.low > 0
    assert lead.value == pytest.approx(card.get("follows-salience").value - card.get("follows-truth").value)
    assert "This model follows salience instead of the support" in tier_one_words(rehearsal, card, records)[0]


def test_a_mask_that_takes_all_is_not_said_to_follow_salience(rehearsal):
    """What is salient is larger than other targets, so the whole image goes better with it; it is not looked for."""
    records = rehearsal.records("whole-image")
    card = rehearsal.benchmark.score(records, rehearsal.options)
    assert (card.get("covers-target").value, card.get("covers-salience").value) == (1, 1)
    assert "masks do not tell the target from what is salient" in tier_one_words(rehearsal, card, records)[0]


def test_counts_of_any_mask_are_those_of_its_pixels(rehearsal):
    rng = np.random.default_rng(0)
    [unit] = [unit for batch in rehearsal.prepared for unit in batch.units if unit.payload.slices["tier"] == 1][:1]
    pair = unit.payload
    mask = rng.random(pair.truth.mask.shape) < 0.4
    pixels = list(zip(mask.ravel(), pair.truth.mask.ravel(), pair.salient.ravel(), strict=True))
    assert count_salient_pixels(pair, mask) == {
        "salient": sum(bool(s) for _, _, s in pixels),
        "predicted_salient": sum(bool(p and s) for p, _, s in pixels),
        "truth_salient": sum(bool(t and s) for _, t, s in pixels),
        "found_salient": sum(bool(p and t and s) for p, t, s in pixels),
    }


def test_a_gap_without_a_saliency_model_is_an_association_only(folder):
    # The jackknife interval of these eleven query images includes 0.
    options = {"data": folder.data, "tiers": "1", "resamples": 100, "interval": "percentile"}
    rehearsal = InMemoryRun("toss", options)
    card, records = answered(rehearsal, saliency=1.0)
    assert set(records["salient"]) == set(records["predicted_salient"]) == {-1}
    assert not FOLLOWING & {score.name for score in card.scores}
    text, _ = tier_one_words(rehearsal, card, records)
    assert card.get("salience-gap").interval.low > 0
    assert "That is an association" in text and "--saliency" in text
    assert "follows salience instead of the support:" not in text


def test_a_saliency_model_is_asked_where_it_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    rehearsal = InMemoryRun("toss", {"data": folder.data, "tiers": "1", "resamples": 0, "saliency": "planted-saliency"})
    assert {score.name for score in rehearsal.score("planted-one-shot").scores} >= FOLLOWING


def test_the_saliency_model_is_part_of_what_answers_depend_on(folder):
    without = TOSS.sources(TossOptions(data=folder.data))
    asked, other = (
        TOSS.sources(TossOptions(data=folder.data, saliency="planted-saliency", saliency_args=args))
        for args in ("", "centre=0.5")
    )
    assert "saliency model" not in without
    assert asked["saliency model"] != other["saliency model"]


def test_a_saliency_model_with_nothing_to_do_is_refused(folder):
    with pytest.raises(OptionError, match="--saliency is used in tier 1 alone"):
        InMemoryRun("toss", {"data": folder.data, "fixed": True, "saliency": "planted-saliency"})


@pytest.mark.parametrize(
    ("lead", "pull", "expected"),
    [
        ((-0.3, -0.1), (-0.3, -0.1), "This model follows the target rather than salience"),
        ((0.02, 0.14), (-0.27, -0.1), "covers the target rather than what is salient, though"),
        ((0.02, 0.14), (0.1, 0.2), "This model follows salience instead of the support"),
        (
            (0.02, 0.14),
            (-0.1, 0.2),
            "These data cannot tell whether this model follows salience: the interval includes",
        ),
    ],
)
def test_two_measures_that_disagree_are_both_told(lead, pull, expected):
    ends = {"salience-lead": lead, "salience-pull": pull}
    values = {"follows-truth": 0.2, "follows-salience": 0.27, "covers-target": 0.78, "covers-salience": 0.6}

    def describe(n):
        scores = [Score(name, value, n) for name, value in values.items()]
        scores += [
            Score(name, sum(span) / 2, n, Interval(*span, 0.95, "percentile", n, "query image"))
            for name, span in ends.items()
        ]
        return describe_following(Scorecard("toss", "1", "m", tuple(scores)))

    words = describe(40)
    assert expected in words
    assert "These data cannot tell" in describe(9) and "there are 9 query images" in describe(9)
    # A true minus, and no parentheses within parentheses.
    assert "-0." not in words and "((" not in words and "))" not in words
