"""MetaCoCo on the planted world: what each fault of a learner moves, ways and shots, options that make no sense."""

import pytest

from hardlook.errors import OptionError
from hardlook.harness.calibration import calibrate
from hardlook.harness.options import parse_options
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.scoring import check_readings
from hardlook.metacoco.benchmark import METACOCO
from hardlook.metacoco.tasks.images import MODES

FAULTS = {"context": 0.5, "noise": 0.2}

SMALL = {"tasks": 6, "resamples": 30, "modes": "iid,ood", "queries": 2}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("metacoco", {"tasks": 6, "resamples": 0, "modes": ",".join(MODES), "queries": 3})


def test_a_learner_without_fault_answers_everything(rehearsal):
    card = rehearsal.score("planted-learner")
    assert {mode: card.get(mode).value for mode in MODES} == dict.fromkeys(MODES, 1.0)
    assert card.get("gap").value == 0


def test_a_swapped_context_deceives_who_follows_context_every_time(rehearsal):
    card = rehearsal.score("planted-learner", {"context": 1.0})
    assert (card.get("iid").value, card.get("swapped").value, card.get("swapped-gap").value) == (1, 0, 1)
    assert card.get("attraction").value == 1
    assert card.get("attraction", mode="swapped").value == 1
    # Where all classes are in one context, context tells nothing and the concept decides.
    assert card.get("shared").value == 1


def test_calibration_finds_what_each_dial_is_meant_to_do():
    found = calibrate("metacoco", {"tasks": 24, "modes": "iid,ood", "resamples": 0}, (0.0, 0.35, 0.7, 1.0))
    curves = {(curve.dial.name, curve.dial.score): curve for curve in found.curves}
    assert set(curves) == {
        ("follows context", "gap"), ("follows context", "excess-attraction"), ("follows context", "iid"),
        ("follows context", "attraction"), ("guesses", "iid"),
    }  # fmt: skip
    assert found.passed
    assert curves["follows context", "gap"].spearman == 1
    assert curves["follows context", "excess-attraction"].spearman == 1
    assert curves["follows context", "attraction"].spearman == 1
    assert curves["follows context", "iid"].score_range == 0
    assert curves["guesses", "iid"].spearman == -1


def test_blind_supports_of_the_paper_are_of_any_context():
    rehearsal = InMemoryRun(
        "metacoco", {**SMALL, "modes": "blind,iid", "shots": "3", "queries": 1, "blind_supports": "paper"}
    )
    card = rehearsal.score("planted-learner", FAULTS)
    records = rehearsal.records("planted-learner", FAULTS)
    blind, iid = (records.filter(mode=mode) for mode in ("blind", "iid"))
    assert set(blind["support_context"].explode()) == {-1}
    assert blind["concepts"].to_list() == iid["concepts"].to_list()
    names = {score.name for score in card.scores}
    assert {"blind", "iid"} <= names
    # Its supports are not those of iid, and they are in no one context that an error could follow.
    assert not names & {"blind-gap", "attraction"}
    [reading] = card.readings
    assert (reading.name, reading.value, reading.default) == ("blind-supports", "paper", "ours")


def test_more_ways_and_shots_are_slices_beside_the_headline():
    rehearsal = InMemoryRun("metacoco", {**SMALL, "tasks": 3, "ways": "3,2", "shots": "2,1"})
    card = rehearsal.score("planted-learner")
    assert card.get("iid").n == 3
    for ways, shots in (("3", "1"), ("2", "2"), ("2", "1")):
        assert card.get("gap", ways=ways, shots=shots).n == 3
        assert card.get("ood", ways=ways, shots=shots).value == 1
    records = rehearsal.records("planted-learner")
    headline = records.filter(ways=3, shots=2, mode="iid")
    assert card.get("iid").value == headline["correct"].sum() / headline["queries"].sum() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"modes": "iid,upside-down"},
        {"modes": "iid,iid"},
        {"ways": "0"},
        {"shots": "1,1"},
        {"queries": 0},
        {"scenes": 9},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused_by_name(wrong):
    with pytest.raises(OptionError, match=f"--{next(iter(wrong))}"):
        parse_options(METACOCO.options, wrong)


def test_an_unknown_mode_is_answered_with_those_there_are():
    with pytest.raises(OptionError, match="blind, iid, ood, swapped, shared"):
        parse_options(METACOCO.options, {"modes": "upside-down"})


def test_contexts_of_test_and_training_share_none():
    with pytest.raises(OptionError, match=r"--train-contexts: .*fog: also given as --test-contexts"):
        parse_options(METACOCO.options, {"test_contexts": "fog,dusk", "train_contexts": "night,fog"})


def test_the_help_says_how_to_take_every_split():
    assert "all: every split" in METACOCO.options.model_fields["split"].description


def test_a_reading_that_has_an_option_of_its_own_is_answered_with_it():
    options = parse_options(METACOCO.options, {"reading": {"blind-supports": "paper"}})
    with pytest.raises(OptionError, match="--reading blind-supports") as caught:
        check_readings(METACOCO, options)
    assert "sets it by --blind-supports" in str(caught.value)
    with pytest.raises(OptionError, match="has no such reading"):
        check_readings(METACOCO, parse_options(METACOCO.options, {"reading": {"sound": "loud"}}))


def test_too_many_shots_for_the_world_are_refused_with_counts():
    with pytest.raises(OptionError, match="0 of 12 classes can form 5-way 9-shot tasks with 4 queries") as caught:
        InMemoryRun("metacoco", {"shots": "9"})
    assert "no context holds" in str(caught.value)
    assert "ask for fewer ways, shots, queries or modes" in str(caught.value)
