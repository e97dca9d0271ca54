"""The sections of MetaCoCo's report, and which queries of a task are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import CurveChart, DotChart, Gallery, HeatMap, Table
from hardlook.metacoco.benchmark import METACOCO
from hardlook.metacoco.report import MAX_QUERIES, choose_queries
from hardlook.models.registry import build


@given(st.integers(2, 6).flatmap(lambda ways: st.lists(st.integers(0, ways - 1), min_size=3 * ways, max_size=3 * ways)))
def test_the_queries_shown_are_wrong_and_of_as_many_classes_as_there_are(predicted):
    shown = choose_queries(predicted, each=3)
    wrong = {place for place, answer in enumerate(predicted) if answer != place // 3}
    pool = wrong or set(range(len(predicted)))
    assert len(shown) == len(set(shown)) == min(MAX_QUERIES, len(pool)) and set(shown) <= pool
    classes = {place // 3 for place in pool}
    assert len({place // 3 for place in shown}) == min(MAX_QUERIES, len(classes))


def test_a_task_without_an_error_shows_queries_too():
    rehearsal = InMemoryRun("metacoco", {"tasks": 1, "queries": 2, "resamples": 0, "modes": "iid"})
    unit = next(unit for batch in rehearsal.prepared for unit in batch.units)
    [record] = METACOCO.evaluate([unit], build("planted-learner", "few-shot-learner"))
    labels = [picture.label for picture in METACOCO.pictures(unit, record)]
    assert record["correct"] == record["queries"]
    asked = [label for label in labels if not label.startswith("support: ")]
    assert len(asked) == MAX_QUERIES
    assert all(label.split(",")[0] == label.split("answered ")[1] for label in asked)


FAULTS = {"context": 0.8, "noise": 0.2}


def shown(learner=None, **given):
    """(records, scorecard, {title: section}) of a small run."""
    learner = FAULTS if learner is None else learner
    rehearsal = InMemoryRun("metacoco", {"tasks": 10, "queries": 2, "resamples": 50, **given})
    records, card = rehearsal.records("planted-learner", learner), rehearsal.score("planted-learner", learner)
    return records, card, {section.title: section for section in METACOCO.report(records, card)}


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


def test_tasks_that_context_decided_are_those_that_lose_most(whole):
    records, _, sections = whole
    rows = {(row["mode"], row["index"]): row for row in records.filter(shots=1).to_dicts()}
    galleries = {gallery.title: gallery for gallery in blocks(sections["Where context decided"], Gallery)}
    modes = {"Tasks that another class's context misled most": "swapped"}
    modes["Tasks that leaving the context cost most"] = "ood"
    assert set(galleries) == set(modes)
    for title, gallery in galleries.items():
        losses = {}
        for (mode, index), row in rows.items():
            if mode == modes[title]:
                home = rows["iid", index]
                losses[row["unit"]] = home["correct"] / home["queries"] - row["correct"] / row["queries"]
        most = sorted((loss for loss in losses.values() if loss > 0), reverse=True)[:4]
        assert [losses[example.unit] for example in gallery.examples] == most
        first = rows[modes[title], int(gallery.examples[0].unit[-5:])]
        assert gallery.examples[0].caption.startswith(f"{first['correct']} of {first['queries']} right, and")


def test_without_a_loss_no_task_is_shown():
    for learner, modes in (({}, "iid,ood,swapped"), (FAULTS, "ood,swapped")):
        assert "Where context decided" not in shown(learner, modes=modes, tasks=4)[2]


def test_pictures_name_what_was_shown_and_what_was_answered():
    rehearsal = InMemoryRun("metacoco", {"tasks": 3, "queries": 2, "modes": "swapped"})
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


def caption(given, title, kind):
    _, _, sections = shown(tasks=4, **given)
    return blocks(sections[title], kind)[0].caption


@pytest.mark.parametrize(
    ("given", "says", "says_not"),
    [
        ({"modes": "iid,ood,blind"}, "Every row is of the same tasks", "of their own"),
        ({"modes": "iid,ood,shared"}, "Rows iid, ood are the same tasks", "Every row"),
        ({"modes": "iid,shared"}, "Tasks of shared have classes of their own", "same tasks"),
        ({"modes": "iid,ood,blind", "blind_supports": "paper"}, "blind have supports of their own", "Every row"),
        ({"modes": "iid"}, "t intervals", "same"),
    ],
    ids=str,
)
def test_rows_are_called_the_same_tasks_where_they_are(given, says, says_not):
    text = caption(given, "What context is worth", DotChart)
    assert says in text
    assert says_not not in text


def test_the_heat_map_names_the_modes_whose_queries_it_holds():
    title = "From which context to which"
    text = caption({"modes": "iid,ood,blind,shared"}, title, HeatMap)
    assert "queries of iid, blind, ood; the diagonal, in the support's context, those of iid, blind." in text
    text = caption({"modes": "iid,ood,blind", "blind_supports": "paper"}, title, HeatMap)
    assert "queries of iid, ood; the diagonal, in the support's context, those of iid." in text


def of_concepts(count):
    """The captions of the section of concepts, of a run with so many."""
    records, _, _ = shown(modes="iid", tasks=2)
    scores = [Score("accuracy", place / count, 9, slice={"mode": mode, "concept": f"concept {place}"})
              for place in range(count) for mode in ("iid", "ood")]  # fmt: skip
    card = Scorecard("metacoco", "1", "", (Score("iid", 1, 2), *scores))
    found = next(section for section in METACOCO.report(records, card) if section.title == "Which concepts")
    return [block.caption for block in found.blocks]


def test_a_choice_of_concepts_is_said():
    assert all(text.startswith("The 40 lowest of 41 concepts.") for text in of_concepts(41))
    assert not any("lowest of" in text for text in of_concepts(40))


def test_a_run_stands_in_the_column_of_its_shots():
    """Three-way tasks of 5 and 1 shots, two-way of 2: one row for 3 ways, with both columns."""
    _, card, sections = shown(modes="blind", ways="3,2", shots="5,1", queries=1, tasks=4)
    [table] = blocks(sections["Beside the published tables"], Table)
    column = {name: place for place, name in enumerate(table.columns)}
    ours = [row for row in table.rows if row[column["where from"]] == "this run"]
    assert [row[column["ways"]] for row in ours] == [2, 3]
    for row in ours:
        ways = str(row[column["ways"]])
        for shots, title in (("1", "1 shot"), ("5", "5 shots")):
            where = {} if (ways, shots) == ("3", "5") else {"ways": ways, "shots": shots}
            assert row[column[title]] == card.get("blind", **where).value
    baseline = next(row for row in table.rows if row[0] == "Baseline" and row[column["where from"]] == "Table 2")
    assert baseline[column["uses"]] == "GL TT"


def test_one_number_of_shots_leaves_the_other_column_empty():
    _, card, sections = shown(modes="blind", shots="1", tasks=4)
    [table] = blocks(sections["Beside the published tables"], Table)
    first = dict(zip(table.columns, table.rows[0], strict=True))
    assert (first["1 shot"], first["5 shots"], first["ways"]) == (card.get("blind").value, None, 5)
    _, _, sections = shown(modes="blind", shots="2", tasks=4)
    assert "this run's blind tasks have others" in sections["Beside the published tables"].text
    _, _, sections = shown(modes="iid", tasks=4)
    assert sections["Beside the published tables"].text == "This run has no blind tasks."


@pytest.mark.parametrize(
    ("model", "more", "named"),
    [
        ("ridge", {}, "ridge with the encoder planted-encoder on MetaCoCo"),
        ("ridge", {"encoder": "planted-encoder", "encoder_args": "turn=.1"}, "encoder planted-encoder (turn=.1) on"),
        ("planted-learner", {}, "planted-learner on MetaCoCo"),  # it needs no features
    ],
)
def test_report_and_output_name_the_encoder_that_a_learner_works_on(
    hardlook, tmp_path, monkeypatch, model, more, named
):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    options = {"scenes": 480, "tasks": 2, "queries": 2, "modes": "iid", "ways": 3, "shots": 1, "resamples": 0, **more}
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    answer = hardlook("run", "metacoco", "--model", model, *words, "--out", tmp_path / "run", "--quiet")
    assert answer.code == 0, answer.err
    assert named in (tmp_path / "run" / "report.html").read_text()
    assert ("encoder: planted-encoder" in answer.out) == ("encoder" in named)
    assert "encoder" not in (tmp_path / "run" / "scores.json").read_text()
