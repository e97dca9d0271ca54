import csv
import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from hardlook.collect.results import ratings
from hardlook.collect.results.exclusion_rules import ExclusionRules
from hardlook.collect.results.ratings import build_sections, collect_ratings, export_ratings
from hardlook.collect.store.records import BatchRules, NewAnswer
from hardlook.collect.store.store import Store
from hardlook.collect.study.folder import make_study, open_study
from hardlook.collect.study.ratings import RatedThing, build_tasks, build_training_tasks
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError
from hardlook.harness.verdicts import MIN_CLUSTERS

pytest.importorskip("sqlalchemy")

MEASURES = ("good", "poor", "worst")


def things(count=14, measures=MEASURES, seed=0):
    """Pairs whose true likeness is known; a measure says it with more or less noise."""
    rng = np.random.default_rng(seed)
    noise = {"good": 0.02, "poor": 0.3, "worst": 0.7}
    truth = np.linspace(0.05, 0.95, count)
    said = {name: np.clip(truth + rng.normal(0, noise[name], count), 0, 1) for name in measures}
    return truth, [
        RatedThing(f"pair/a{i}/b{i}", "pair", (f"a{i}", f"b{i}"), {name: float(said[name][i]) for name in measures})
        for i in range(count)
    ]


def small_study(path, question="fit", raters=5, measures=MEASURES, count=14, title="Pairs"):
    truth, rated = things(count, measures)
    settings = StudySettings(
        kind="ratings", title=title, devices=("any",), question=question, target_answers=raters, training_tasks=2
    )
    made = {"values": {thing.subject: dict(thing.values) for thing in rated}, "left_out": []}
    make_study(path, settings, [*build_training_tasks(2), *build_tasks(rated, question)], made=made)
    return open_study(path), {thing.subject: float(value) for thing, value in zip(rated, truth, strict=True)}


def crowd(study, store, people, rate):
    """So many people take all they are given; `rate(task, person, rng)` is what one says."""
    store.prepare(study.items, study.settings.devices, study.fingerprint)
    rules, rng, given = BatchRules.of(study.settings), np.random.default_rng(7), []
    for person in range(people):
        someone = store.join(None, "en", now=float(person))
        store.set_device(someone.id, "any", now=float(person))
        while (batch := store.next_batch(someone.id, rules, now=100.0 + person)) is not None:
            for trial in batch.trials:
                rating = rate(study.by_id[trial.item.task], person, rng)
                new = NewAnswer(f"key-{len(given):06d}", trial.id, value=rating, reaction_ms=900.0)
                store.answer(someone.id, new, lambda n: 0, now=200.0 + person)
                given.append((person + 1, trial.item.task, rating))
    return given


def by_fit(truth):
    """Somebody who knows the truth and rates a value by how near it comes, each a little stricter or milder."""

    def rate(task, person, rng):
        far = abs(task.value - truth[task.subject])
        return int(np.clip(round(9 - 10 * far + (person % 3 - 1) + rng.normal(0, 0.7)), 1, 10))

    return rate


def by_likeness(truth):
    def rate(task, person, rng):
        return int(np.clip(round(1 + 9 * truth[task.subject] + rng.normal(0, 1)), 1, 10))

    return rate


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    study, truth = small_study(tmp_path_factory.mktemp("fit") / "study")
    with Store.open(study.database) as store:
        given = crowd(study, store, 15, by_fit(truth))
        yield study, store, given


def test_the_measure_that_people_prefer_comes_out_best(fit, tmp_path):
    study, store, given = fit
    document = export_ratings(study, store, tmp_path / "out")
    scores = {one["measure"]: one["score"]["value"] for one in document["forms"]["pair"]["measures"]}
    assert scores["good"] > scores["poor"] > scores["worst"]
    for name in MEASURES:
        mine = [rating for _, task, rating in given if study.by_id[task].measure == name]
        assert scores[name] == pytest.approx(sum(mine) / len(mine))
    gaps = {(one["first"], one["second"]): one for one in document["forms"]["pair"]["differences"]}
    assert gaps["good", "worst"]["adjusted"] < 0.05
    assert gaps["good", "worst"]["difference"]["interval"]["low"] > 0
    assert any("good has the highest score" in words for words in document["in_words"])
    # Fewer than ten things are rated for both of two measures: that is no verdict.
    things = max(one["things"] for one in document["forms"]["pair"]["differences"])
    said = "people prefer it." if things >= 10 else "These data cannot tell whether people prefer it"
    assert any(said in words for words in document["in_words"])


def test_measures_with_the_same_score_are_not_ranked(tmp_path):
    study, _ = small_study(tmp_path / "study")
    with Store.open(study.database) as store:
        crowd(study, store, 4, lambda task, person, rng: 7)
        words = export_ratings(study, store, tmp_path / "out")["in_words"]
    assert any("all measures have the same score (7.00" in said for said in words)
    assert not any("prefer it" in said for said in words)


def test_files_hold_what_was_given(fit, tmp_path):
    study, store, given = fit
    export_ratings(study, store, tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "ratings.csv").open()))
    assert sorted((int(row["participant"]), row["item"], int(row["rating"])) for row in rows) == sorted(given)
    for row in rows:
        task = study.by_id[row["item"]]
        assert (row["form"], row["labels"], row["measure"]) == ("pair", " | ".join(task.labels), task.measure)
        assert float(row["value"]) == task.value
        assert float(row["reaction_ms"]) == 900
    ids = set(store.participants()["id"])
    for name in ("ratings.csv", "items.csv", "report.json", "page.html"):
        assert not any(one in (tmp_path / "out" / name).read_text() for one in ids), name
    items = pl.read_csv(tmp_path / "out" / "items.csv")
    for item, count, mean in items.select("item", "ratings", "mean").iter_rows():
        mine = [rating for _, task, rating in given if task == item]
        assert (count, mean) == (len(mine), pytest.approx(sum(mine) / len(mine)))


def test_no_participant_rates_a_pair_under_two_measures(fit):
    study, _, given = fit
    seen = [(person, study.by_id[task].subject) for person, task, _ in given]
    assert len(seen) == len(set(seen)) == 15 * 14


def test_exports_are_equal_twice(fit, tmp_path):
    study, store, _ = fit
    for name in ("one", "two"):
        export_ratings(study, store, tmp_path / name)
    for file in ("ratings.csv", "items.csv", "report.json", "page.html"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_a_rule_leaves_people_out_and_counts_their_ratings(fit, tmp_path):
    study, store, given = fit
    mine = sum(person == 1 for person, _, _ in given)
    document = export_ratings(study, store, tmp_path / "out", ExclusionRules(participants=("1",)))
    assert document["ratings"] == len(given) - mine
    assert {"what": "ratings", "count": mine} in [
        {k: row[k] for k in ("what", "count")} for row in document["left_out"]
    ]
    store.set_rules({"participants": ["1"]})
    assert export_ratings(study, store, tmp_path / "again")["ratings"] == len(given) - mine
    # Rules that are given go before those of the dashboard.
    assert export_ratings(study, store, tmp_path / "all", ExclusionRules())["ratings"] == len(given)
    store.set_rules({})


def test_likeness_prefers_the_measure_in_people_s_order(tmp_path):
    study, truth = small_study(tmp_path / "study", "likeness")
    with Store.open(study.database) as store:
        given = crowd(study, store, 5, by_likeness(truth))
        document = export_ratings(study, store, tmp_path / "out")
    assert len(given) == 5 * 14
    mean = {s: np.mean([r for _, t, r in given if study.by_id[t].subject == s]) for s in truth}
    values = study.made["values"]
    for one in document["forms"]["pair"]["measures"]:
        x = [values[subject][one["measure"]] for subject in truth]
        assert one["score"]["value"] == pytest.approx(spearmanr(x, [mean[s] for s in truth]).statistic)
    best = max(document["forms"]["pair"]["measures"], key=lambda one: one["score"]["value"])
    assert best["measure"] == "good"
    row = next(csv.DictReader((tmp_path / "out" / "ratings.csv").open()))
    assert (row["measure"], row["value"]) == ("", "")


@pytest.mark.parametrize("question", ["fit", "likeness"])
def test_no_rating_yet(tmp_path, question):
    study, _ = small_study(tmp_path / "study", question)
    with Store.open(study.database) as store:
        for prepared in (False, True):
            if prepared:
                store.prepare(study.items, study.settings.devices, study.fingerprint)
            document = export_ratings(study, store, tmp_path / "out")
            assert document["ratings"] == 0
            assert document["items_without_ratings"] == len(study.items)
            assert document["in_words"][0] == "There are no ratings yet."
            assert "There are no ratings of pairs of labels yet." in (tmp_path / "out" / "page.html").read_text()
            assert len((tmp_path / "out" / "ratings.csv").read_text().splitlines()) == 1
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report == document
    assert all(one["score"]["value"] is None for one in report["forms"]["pair"]["measures"])


@pytest.mark.parametrize("question", ["fit", "likeness"])
@pytest.mark.parametrize("measures", [("good",), ("good", "poor")])
def test_one_rater_is_no_agreement(tmp_path, question, measures):
    study, truth = small_study(tmp_path / "study", question, measures=measures)
    with Store.open(study.database) as store:
        crowd(study, store, 1, by_fit(truth) if question == "fit" else by_likeness(truth))
        document = export_ratings(study, store, tmp_path / "out")
    page = (tmp_path / "out" / "page.html").read_text()
    assert document["participants"] == 1
    assert "No task has two ratings yet" in page
    assert ("There is one measure" in page) == (len(measures) == 1)
    assert document["items_with_too_few"] == len(study.items)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["forms"]["pair"]["agreement"]["ordinal"]["value"] is None


def test_one_single_rating(tmp_path):
    study, _ = small_study(tmp_path / "study", measures=("good",), count=1)
    with Store.open(study.database) as store:
        crowd(study, store, 1, lambda task, person, rng: 4)
        document = export_ratings(study, store, tmp_path / "out")
    (one,) = document["forms"]["pair"]["measures"]
    assert one["score"]["value"] == 4
    assert one["score"]["interval"]["low"] is None
    assert "the only measure with a score" in " ".join(document["in_words"])


def test_texts_of_a_study_are_escaped_on_the_page(tmp_path):
    study, truth = small_study(tmp_path / "study", title="<script>alert(1)</script>")
    with Store.open(study.database) as store:
        crowd(study, store, 2, by_fit(truth))
        export_ratings(study, store, tmp_path / "out")
    assert "<script>alert(1)" not in (tmp_path / "out" / "page.html").read_text()


def test_a_database_of_another_study_is_refused(tmp_path, fit):
    other, _ = small_study(tmp_path / "other", count=2)
    _, store, _ = fit
    with pytest.raises(DataError, match="another study"):
        collect_ratings(other, store)


@pytest.mark.parametrize(("by_person", "fixed", "wide"), [(True, "score", "people"), (False, "people", "score")])
def test_intervals_of_an_export_resample_things_and_people(tmp_path, by_person, fixed, wide):
    """Ratings that depend on the rater alone do not vary over things, and the other way round."""
    study, truth = small_study(tmp_path / "study", raters=9, measures=("good",), count=14)
    number = {subject: i for i, subject in enumerate(truth)}

    def rate(task, person, rng):
        return 1 + (person if by_person else number[task.subject]) % 9

    with Store.open(study.database) as store:
        given = crowd(study, store, 9, rate)
        document = export_ratings(study, store, tmp_path / "out")
    (one,) = document["forms"]["pair"]["measures"]
    mean = sum(rating for *_, rating in given) / len(given)
    assert (one["ratings"], one["things"], document["participants"]) == (9 * 14, 14, 9)
    assert [one[fixed]["interval"][end] for end in ("low", "high")] == pytest.approx([mean, mean])
    assert one[wide]["interval"]["low"] + 1 < mean < one[wide]["interval"]["high"] - 1


def test_the_page_lists_the_best_rated_task_first(tmp_path):
    """One rater gives 3, 9, 3, 6 to four pairs, each under one of two measures; the other half is not rated."""
    study, truth = small_study(tmp_path / "study", raters=1, measures=("good", "poor"), count=4)
    scale = dict(zip(truth, (3, 9, 3, 6), strict=True))
    with Store.open(study.database) as store:
        given = {task: rating for _, task, rating in crowd(study, store, 1, lambda task, *_: scale[task.subject])}
        [*_, items, _] = build_sections(collect_ratings(study, store))
    # Equal means stay in the order of tasks, and tasks without a rating come last.
    tasks = [task for task in study.tasks if not task.training]
    ordered = sorted(tasks, key=lambda task: -given.get(task.id, 0))
    assert [given.get(task.id) for task in ordered] == [9, 6, 3, 3, None, None, None, None]
    assert [(row[0], row[2], row[5]) for row in items.blocks[0].rows] == [
        (" | ".join(task.labels), task.measure, given.get(task.id)) for task in ordered
    ]


def test_the_table_of_measures_has_both_intervals(fit):
    study, store, given = fit
    collected = collect_ratings(study, store)
    _, table = build_sections(collected)[0].blocks
    for row, name, one in zip(table.rows, MEASURES, collected.scores["pair"].measures, strict=True):
        shown = dict(zip(table.columns, row, strict=True))
        mine = [(study.by_id[task].subject, rating) for _, task, rating in given if study.by_id[task].measure == name]
        assert (shown["measure"], shown["ratings"], shown["things"]) == (name, len(mine), len(dict(mine)))
        assert shown["mean rating"] == pytest.approx(np.mean([rating for _, rating in mine]))
        assert shown["from"] < shown["mean rating"] < shown["to"]
        assert (shown["from"], shown["to"]) == (one.score.interval.low, one.score.interval.high)
        assert (shown["people from"], shown["people to"]) == (one.people.interval.low, one.people.interval.high)
        assert shown["people from"] < shown["mean rating"] < shown["people to"]


@pytest.mark.parametrize(
    "values", [(0.2, math.nan, 0.9), (math.nan, 0.2, 0.9), (-0.5, 0.2, math.nan), (0.2, 0.9, -0.5)]
)
@pytest.mark.parametrize("rated", [True, False])
def test_the_chart_has_the_best_measure_first_and_none_without_a_score(fit, values, rated):
    collected = collect_ratings(*fit[:2])
    scores = collected.scores["pair"]
    measures = [
        replace(one, score=replace(one.score, value=value), ratings=one.ratings if rated or value == value else 0)
        for one, value in zip(scores.measures, values, strict=True)
    ]
    changed = replace(collected, scores={"pair": replace(scores, measures=tuple(measures))})
    chart, table = build_sections(changed)[0].blocks
    defined = sorted((value for value in values if value == value), reverse=True)
    assert [(dot.label, dot.value) for dot in chart.rows] == [
        (MEASURES[values.index(value)], value) for value in defined
    ]
    # The table keeps the order of the study.
    assert [row[0] for row in table.rows] == list(MEASURES)


def test_what_was_left_out_is_in_a_table_where_there_is_any(fit):
    collected = collect_ratings(*fit[:2])
    nothing = build_sections(replace(collected, left_out=()))[-1]
    assert not [block for block in nothing.blocks if block.title == "Left out"]
    rows = ({"what": "ratings", "count": 3, "why": "excluded", "examples": ["p1", 2]},)
    [table] = [
        block for block in build_sections(replace(collected, left_out=rows))[-1].blocks if block.title == "Left out"
    ]
    assert list(table.rows) == [("ratings", 3, "excluded", "p1, 2")]


@pytest.mark.parametrize(
    ("adjusted", "things", "words"),
    [
        (0.05, MIN_CLUSTERS, ", beyond chance above {}: people prefer it."),
        (0.0501, MIN_CLUSTERS, "no difference is beyond chance."),
        (0.01, MIN_CLUSTERS - 1, f"are rated for both of two measures, and a verdict needs {MIN_CLUSTERS}."),
    ],
)
def test_a_verdict_needs_a_difference_beyond_chance_and_enough_things(fit, adjusted, things, words):
    scores = collect_ratings(*fit[:2]).scores["pair"]
    best = max(scores.measures, key=lambda one: one.score.value).measure
    others = [name for name in MEASURES if name != best]
    pairs = [(best, others[0]), (others[1], best), (others[0], others[1])]
    rows = [
        replace(one, first=first, second=second, adjusted=adjusted if best in (first, second) else 1e-9, things=things)
        for one, (first, second) in zip(scores.differences, pairs, strict=True)
    ]
    said = ratings._describe_best("pairs", replace(scores, differences=tuple(rows)))
    assert said.startswith(f"On pairs {best} has the highest score (")
    assert said.endswith(words.format(", ".join(others)))


def test_the_chart_has_the_interval_over_things(fit):
    collected = collect_ratings(*fit[:2])
    chart, _ = build_sections(collected)[0].blocks
    intervals = {one.measure: one.score.interval for one in collected.scores["pair"].measures}
    assert {dot.label: (dot.low, dot.high, dot.group) for dot in chart.rows} == {
        name: (interval.low, interval.high, "") for name, interval in intervals.items()
    }


def test_the_best_measure_in_words_where_there_are_few_scores(fit):
    scores = collect_ratings(*fit[:2]).scores["pair"]
    best = max(scores.measures, key=lambda one: one.score.value)
    unknown = [replace(one, score=replace(one.score, value=math.nan)) for one in scores.measures]
    said = ratings._describe_best("pairs", replace(scores, measures=tuple(unknown)))
    assert said == "No score of a measure is defined yet for pairs."
    interval = best.score.interval
    value = f"{best.score.value:.2f}, 95 % interval {interval.low:.2f} to {interval.high:.2f}"
    alone = ratings._describe_best("pairs", replace(scores, measures=(*unknown, best)))
    assert alone == f"On pairs {best.measure} has the highest score ({value}), the only measure with a score."
    bare = replace(best, score=replace(best.score, interval=replace(interval, low=math.nan, high=math.nan)))
    alone = ratings._describe_best("pairs", replace(scores, measures=(bare,)))
    assert f"has the highest score ({best.score.value:.2f}), the only" in alone
    # Without a difference nothing was rated for two measures.
    said = ratings._describe_best("pairs", replace(scores, differences=()))
    assert ": 0 things are rated for both of two measures" in said


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 0, 0, 4), ["There are no ratings yet.", "4 tasks have none."]),
        ((3, 1, 0, 0), ["3 ratings of 4 tasks by 1 person."]),
        (
            (3, 2, 2, 1),
            ["3 ratings of 4 tasks by 2 people.", "2 tasks have fewer than the 5 ratings wanted, 1 of them none."],
        ),
    ],
)
def test_the_numbers_of_ratings_in_words(numbers, words):
    given, people, few, none = numbers
    document = {
        "ratings": given,
        "items": 4,
        "participants": people,
        "items_with_too_few": few,
        "items_without_ratings": none,
        "ratings_wanted_of_an_item": 5,
    }
    assert ratings._describe_results(document, {}) == words


def test_a_long_table_of_tasks_says_where_the_others_are(fit, monkeypatch):
    collected = collect_ratings(*fit[:2])
    count = len(collected.items)
    for most, more in ((count, ""), (count - 1, f" The first {count - 1} of {count}; `items.csv` has all.")):
        monkeypatch.setattr(ratings, "_TABLE_ROWS", most)
        [section] = [one for one in build_sections(collected) if one.title == "Tasks"]
        assert section.text == f"Every task with its ratings, the best rated first.{more}"
        assert len(section.blocks[0].rows) == most


def test_labels_that_a_measure_treated_specially_are_listed(fit):
    collected = collect_ratings(*fit[:2])
    measures = {"good": {"treated": {"t-shirt": "as shirt"}}, "poor": {}, "worst": {"treated": {"cup": "as mug"}}}
    changed = replace(collected, study=replace(collected.study, made={"measures": measures}), left_out=())
    section = build_sections(changed)[-1]
    assert [block.title for block in section.blocks] == ["Labels treated specially"]
    assert list(section.blocks[0].rows) == [("t-shirt", "good", "as shirt"), ("cup", "worst", "as mug")]
    assert section.text == "Nothing was left out."


def test_the_report_is_written_in_the_letters_of_the_study(tmp_path):
    study, _ = small_study(tmp_path / "study", count=2, title="Größe und 大小")
    with Store.open(study.database) as store:
        store.prepare(study.items, study.settings.devices, study.fingerprint)
        export_ratings(study, store, tmp_path / "out")
    text = (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    assert '"title": "Größe und 大小"' in text and text.endswith("}\n") and text.startswith('{\n "schema"')
