"""What MetaCoCo's report says and shows."""

import pytest

from hardlook.benchmarks.metacoco.benchmark import METACOCO
from hardlook.contract.sections import CurveChart, DotChart, Gallery, HeatMap
from hardlook.models.registry import build
from hardlook.runs.in_memory import Rehearsal

FAULTS = {"context": 0.8, "noise": 0.2}


def shown(learner=None, **given):
    """(records, scorecard, {title: section}) of a small run."""
    learner = FAULTS if learner is None else learner
    rehearsal = Rehearsal("metacoco", {"tasks": 10, "queries": 2, "resamples": 50, **given})
    records, card = rehearsal.records("planted-learner", learner), rehearsal.score("planted-learner", learner)
    return records, card, {section.title: section for section in METACOCO.sections(records, card)}


def blocks(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


@pytest.fixture(scope="module")
def whole():
    return shown(modes="iid,ood,blind,swapped", shots="1,2,3")


def test_every_mode_has_its_dot_with_its_interval(whole):
    _, card, sections = whole
    [chart] = blocks(sections["What context is worth"], DotChart)
    assert [dot.label.split(":")[0] for dot in chart.rows] == ["iid", "blind", "ood", "swapped"]
    for dot in chart.rows:
        score = card.get(dot.label.split(":")[0])
        assert (dot.value, dot.low, dot.high) == (score.value, score.interval.low, score.interval.high)
    assert "costs" in sections["What context is worth"].text


def test_contexts_are_a_square_of_their_accuracies(whole):
    _, card, sections = whole
    [heat] = blocks(sections["From which context to which"], HeatMap)
    assert list(heat.rows) == list(heat.columns)
    for row, support in enumerate(heat.rows):
        for column, query in enumerate(heat.columns):
            value = heat.values[row][column]
            if value == value:
                assert value == card.get("accuracy", **{"support context": support, "query context": query}).value


@pytest.mark.parametrize("modes", ["ood,swapped,blind", "blind,iid", "swapped,iid", "iid,swapped,blind"])
def test_errors_are_shown_under_the_mode_they_were_made_in(modes):
    _, card, sections = shown(modes=modes)
    [chart] = blocks(sections["Where wrong answers go"], DotChart)
    expected = [mode for mode in ("ood", "swapped", "blind") if mode in modes.split(",")]
    assert list(dict.fromkeys(dot.group for dot in chart.rows)) == expected
    for place, mode in enumerate(expected):
        where = {} if place == 0 else {"mode": mode}
        share, chance = (dot.value for dot in chart.rows if dot.group == mode)
        assert share == card.get("attraction", **where).value
        assert chance == card.get("attraction-chance", **where).value


def test_curves_have_the_headline_among_their_points(whole):
    _, card, sections = whole
    [chart] = blocks(sections["Ways and shots"], CurveChart)
    iid = next(line for line in chart.lines if line.name.startswith("iid"))
    expected = [card.get("iid").value, *(card.get("iid", ways="5", shots=shots).value for shots in ("2", "3"))]
    assert (list(iid.x), list(iid.y)) == ([1, 2, 3], expected)


def test_one_choice_of_ways_and_shots_has_no_curve():
    _, _, sections = shown(modes="iid")
    assert "Ways and shots" not in sections
    assert "Run the modes iid and ood" in sections["What context is worth"].text


def test_a_learner_without_fault_loses_nothing():
    _, _, sections = shown({}, modes="iid,ood")
    assert "No loss shows" in sections["What context is worth"].text
    assert "Where wrong answers go" not in sections


def test_one_context_for_all_supports_leaves_nothing_to_follow():
    _, card, sections = shown(modes="iid,ood", support_contexts="fog")
    assert (card.get("attraction").value, card.get("attraction-chance").value) == (0, 0)
    assert sections["Where wrong answers go"].text.startswith("No wrong class was shown in a query's context")


def test_the_hardest_tasks_are_of_the_lowest_accuracy(whole):
    records, _, sections = whole
    for gallery in blocks(sections["Tasks to look at"], Gallery):
        mode = gallery.title.split()[2]
        first = records.filter(mode=mode, shots=1)
        shares = dict(zip(first["unit"], first["correct"] / first["queries"], strict=True))
        worst = sorted(shares.values())[: len(gallery.examples)]
        assert [shares[example.unit] for example in gallery.examples] == worst


def test_pictures_name_what_was_shown_and_what_was_answered():
    rehearsal = Rehearsal("metacoco", {"tasks": 3, "queries": 2, "modes": "swapped"})
    units = [unit for batch in rehearsal.prepared for unit in batch.units]
    learner = build("planted-learner", role="few-shot-learner", args={"context": 1.0})
    for unit, record in zip(units, METACOCO.evaluate(units, learner), strict=True):
        labels = [picture.label for picture in METACOCO.pictures(unit, record)]
        concepts = record["concepts"].split("\n")
        assert [label.split(": ")[1].split(",")[0] for label in labels[:5]] == concepts
        assert len(labels) == 5 + 5
        for label in labels[5:]:
            asked, answered = label.split(",")[0], label.rpartition("answered ")[2]
            assert asked != answered
            assert {asked, answered} <= set(concepts)
