"""MetaCoCo's scores against the specification written out as loops, and the table of queries against a loop."""

import few_shot_oracle as oracle
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.stats.jackknife import Spread, jackknife_bounds
from hardlook.metacoco.benchmark import METACOCO
from hardlook.metacoco.evaluation import SCHEMA
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.scores import (
    TaskMean,
    compute_task_accuracies,
    compute_unit_qualities,
    describe_comparability,
    find_headline_setting,
    find_published_slice,
    read_answers,
    share_out_mode,
    widen_interval,
)
from hardlook.metacoco.tasks.images import MODES
from hardlook.report.compare.paired_tallies import SwapPlan, pair_tallies
from hardlook.report.score_display import build_card

CONCEPTS, CONTEXTS = ("bus", "cat", "dog", "owl"), ("beach", "fog", "night")


@st.composite
def tasks(draw):
    ways, asked = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    contexts = draw(st.permutations(CONTEXTS))[: draw(st.integers(1, 3))]
    of_context = st.integers(0, len(contexts) - 1)
    answers = st.lists(st.integers(0, ways - 1), min_size=ways * asked, max_size=ways * asked)
    return {
        "ways": ways,
        "concepts": draw(st.permutations(CONCEPTS))[:ways],
        "contexts": contexts,
        "support": draw(st.lists(st.one_of(st.just(-1), of_context), min_size=ways, max_size=ways)),
        "query": draw(st.lists(of_context, min_size=ways * asked, max_size=ways * asked)),
        "predicted": draw(st.one_of(st.just([]), answers)),
    }


def list_expected_answers(listed):
    """Per query: task, concept, right, contexts of query, own and answered supports, misleading classes, ways."""
    kept = [task for task in listed if task["predicted"]]
    for number, task in enumerate(kept):
        shown = [None if place < 0 else task["contexts"][place] for place in task["support"]]
        each = len(task["predicted"]) // task["ways"]
        for place, (answer, context) in enumerate(zip(task["predicted"], task["query"], strict=True)):
            truth, name = place // each, task["contexts"][context]
            misleading = sum(shown[way] == name for way in range(task["ways"]) if way != truth)
            yield (
                number,
                task["concepts"][truth],
                answer == truth,
                name,
                shown[truth],
                shown[answer],
                misleading,
                task["ways"],
            )


def frame(listed):
    columns = {column.name: None for column in SCHEMA.columns}
    rows = [
        {
            **columns,
            "unit": f"{number}",
            "ways": task["ways"],
            "concepts": "\n".join(task["concepts"]),
            "contexts": "\n".join(task["contexts"]),
            "support_context": task["support"],
            "query_context": task["query"],
            "predicted": task["predicted"],
        }
        for number, task in enumerate(listed)
    ]
    ints = pl.List(pl.Int64)
    lists = {"support_context": ints, "query_context": ints, "predicted": ints}
    return pl.DataFrame(rows, schema_overrides={**lists, "concepts": pl.String, "contexts": pl.String})


@given(st.lists(tasks(), min_size=1, max_size=5))
def test_every_query_is_where_a_loop_puts_it(listed):
    found = read_answers(frame(listed))
    names = [None if place < 0 else found.contexts[place] for place in range(-1, len(found.contexts))]

    def named(numbers):
        return [names[number + 1] for number in numbers]

    rows = zip(
        found.task.tolist(),
        [found.concepts[number] for number in found.concept],
        found.right.tolist(),
        named(found.query_context),
        named(found.support_context),
        named(found.answered_context),
        found.misleading_classes.tolist(),
        found.ways.tolist(),
        strict=True,
    )
    assert list(rows) == list(list_expected_answers(listed))
    assert np.array_equal(sorted(found.concepts), found.concepts)


SCORES_CONCEPTS = ("cat", "dog", "car of two words", "bus")

SCORES_CONTEXTS = ("autumn", "beach", "dusk")


def scorecard(rows, combinations=((2, 1),), modes=MODES, **more):
    ways, shots = (tuple(dict.fromkeys(column)) for column in zip(*combinations, strict=True))
    options = MetaCocoOptions(**{"resamples": 0, "modes": modes, "ways": ways, "shots": shots, **more})
    return METACOCO.score(METACOCO.schema.frame(rows), options)


def values(card):
    found = {}
    for score in card.scores:
        bounds = None
        if score.interval is not None and score.interval.method == "t":
            assert score.interval.n == score.n
            assert score.interval.resampled == "task"
            bounds = score.interval.low, score.interval.high
        found[score.name, tuple(sorted(score.slice.items()))] = score.value, bounds, score.n
    assert len(found) == len(card.scores)
    return found


def assert_same(found, expected):
    assert set(found) == set(expected)
    for key, (value, half, n) in expected.items():
        assert found[key][0] == pytest.approx(value, abs=1e-12), key
        # The published interval, cut where it leaves the range of accuracies or of their differences.
        lowest = -1 if key[0].endswith("gap") else 0
        bounds = None if half is None else (max(value - half, lowest), min(value + half, 1))
        assert found[key][1] == (None if bounds is None else pytest.approx(bounds, abs=1e-12)), key
        assert found[key][2] == n, key


def row(mode, ways, shots, index, concepts, support_context, query_context, predicted, *, kept=True):
    """A record as names: contexts of supports (None where several) and of queries, class by class."""
    contexts = sorted({*support_context, *query_context} - {None})
    each = len(predicted) // ways
    correct = sum(answer == place // each for place, answer in enumerate(predicted))
    places = [contexts.index(context) for context in query_context]
    return {
        "unit": f"{ways}way-{shots}shot-{mode}-{index:05d}", "mode": mode, "ways": ways, "shots": shots,
        "index": index, "repeat": 0, "correct": correct, "queries": len(predicted), "concepts": "\n".join(concepts),
        "contexts": "\n".join(contexts),
        "support_context": [-1 if context is None else contexts.index(context) for context in support_context],
        "query_context": places if kept else [], "predicted": list(predicted) if kept else [],
        "support": [0] * ways * shots, "query": [0] * len(predicted),
    }  # fmt: skip


@st.composite
def record_rows(draw, blind_supports="ours"):
    """Few classes, contexts and tasks; modes, tasks and single answers may be missing. Contexts need not fit modes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    modes = draw(st.lists(st.sampled_from(MODES), min_size=1, unique=True))
    combinations = draw(st.lists(st.sampled_from([(2, 1), (2, 2), (3, 1), (3, 2)]), min_size=1, unique=True))
    rows = []
    for ways, shots in combinations:
        for index in range(draw(st.integers(1, 4))):
            concepts = rng.permutation(SCORES_CONCEPTS)[:ways].tolist()
            shown = rng.choice(SCORES_CONTEXTS, ways).tolist()
            for mode in modes:
                each = int(rng.integers(1, 4))
                supports = [None] * ways if (mode, blind_supports) == ("blind", "paper") else shown
                asked = rng.choice(SCORES_CONTEXTS, ways * each).tolist()
                predicted = np.repeat(np.arange(ways), each)
                wrong = rng.random(len(predicted)) < rng.choice([0, 0.4, 1])
                predicted[wrong] = rng.integers(0, ways, int(wrong.sum()))
                if rng.random() < 0.9:
                    kept = bool(rng.random() < 0.9)
                    rows.append(row(mode, ways, shots, index, concepts, supports, asked, predicted.tolist(), kept=kept))
    # Ways and shots are given as two lists, and the headline is the first of both that has a task.
    order = {(ways, shots) for ways, shots in combinations if oracle.of(rows, ways=ways, shots=shots)}
    ways, shots = (list(dict.fromkeys(column)) for column in zip(*combinations, strict=True))
    return rows, tuple(modes), sorted(order, key=lambda pair: (ways.index(pair[0]), shots.index(pair[1])))


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("metacoco", {"tasks": 8, "resamples": 0, "modes": ",".join(MODES), "ways": "5,3", "queries": 3})


@pytest.mark.parametrize("dials", [{"context": 0.7, "noise": 0.3}, {"context": 1.0}, {}], ids=str)
def test_every_score_of_the_planted_world_is_the_specifications(rehearsal, dials):
    records = rehearsal.records("planted-learner", dials)
    assert len(records) == 8 * len(MODES) * 2
    expected = oracle.metacoco_scores(records.to_dicts(), MODES, [(5, 1), (3, 1)])
    assert any(name == "attraction" for name, _ in expected) == bool(dials)
    assert_same(values(METACOCO.score(records, rehearsal.options)), expected)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["ours", "paper"]), st.sampled_from([0.5, 0.95]))
def test_every_score_of_any_records_is_the_specifications(data, blind_supports, level):
    rows, modes, combinations = data.draw(record_rows(blind_supports))
    if not rows:
        return
    card = scorecard(rows, combinations, modes, blind_supports=blind_supports, level=level)
    assert_same(values(card), oracle.metacoco_scores(rows, modes, combinations, blind_supports, level))
    without = sum(not one["predicted"] for one in rows)
    assert sum(note.count for note in card.left_out) == without


@settings(max_examples=15)
@given(record_rows(), st.randoms(use_true_random=False))
def test_scores_and_resampled_intervals_do_not_depend_on_the_order_of_records(drawn, random):
    rows, modes, combinations = drawn
    if not rows:
        return
    shuffled = random.sample(rows, len(rows))
    first, second = (scorecard(some, combinations, modes, resamples=40).to_json() for some in (rows, shuffled))
    assert first == second


def task(index, mode, right):
    """Two classes of five queries each, `right` of the ten answered rightly."""
    predicted = [int((place >= 5) ^ (place >= right)) for place in range(10)]
    return row(mode, 2, 1, index, ["cat", "dog"], ["beach", "dusk"], ["beach"] * 5 + ["dusk"] * 5, predicted)


def test_the_specifications_worked_interval():
    """40, 60, 80 and 20 per cent: 50 +- 41.085205."""
    score = scorecard([task(index, "blind", right) for index, right in enumerate((4, 6, 8, 2))]).get("blind")
    assert score.value == pytest.approx(0.5)
    assert (score.interval.high - score.value) * 100 == pytest.approx(41.085205, abs=1e-6)
    assert (score.n, score.interval.n, score.interval.method) == (4, 4, "t")


def test_a_gap_is_paired_by_the_tasks_number():
    """Tasks 0 and 1 in both modes, 2 and 3 in one: losses .4 and .2, by hand."""
    rows = [task(0, "iid", 10), task(1, "iid", 8), task(2, "iid", 10), task(3, "ood", 5)]
    rows += [task(1, "ood", 6), task(0, "ood", 6)]
    gap = scorecard(rows).get("gap")
    assert (gap.value, gap.n) == (pytest.approx(0.3), 2)
    # sem of (.4, .2) is .1; t(.975, 1) is 12.7062047, and no gap is below -1 or above 1.
    assert (gap.interval.low, gap.interval.high) == (pytest.approx(0.3 - 1.27062047, abs=1e-7), 1)


def test_one_task_has_no_interval():
    card = scorecard([task(0, "iid", 10), task(0, "ood", 6)])
    assert card.get("gap").value == pytest.approx(0.4)
    assert card.get("gap").interval is None
    assert card.get("iid").interval is None


def test_attracted_errors_by_hand():
    """Three classes at the beach, the beach and dusk; errors on a class of the query's context count."""
    shown, asked = ["beach", "beach", "dusk"], ["dusk", "beach", "beach", "dusk", "beach", "beach"]
    # Two answers are right; three of the four wrong ones go to a class shown where the query is.
    predicted = [0, 1, 2, 2, 2, 1]
    card = scorecard([row("ood", 3, 1, 0, ["a", "b", "c"], shown, asked, predicted)], [(3, 1)])
    # Wrong classes in the query's context, of two: 1 (class 1), 1 (class 0), 1 (class 2), 2 (classes 0 and 1).
    assert card.get("attraction").value == pytest.approx(3 / 4)
    assert card.get("attraction-chance").value == pytest.approx((0.5 + 0.5 + 0.5 + 1) / 4)
    assert card.get("excess-attraction").value == pytest.approx(3 / 4 - 2.5 / 4)
    assert card.get("attraction").n == 4


def test_errors_of_one_task_have_a_share_and_no_interval():
    rows = [task(index, "ood", 10) for index in range(1, 5)]
    wrong = [task(index, "ood", 9) for index in range(5, 9)]
    one, two, five = (scorecard([*rows, task(0, "ood", 8), *more], resamples=400) for more in ((), wrong[:1], wrong))
    for name in ("attraction", "attraction-chance", "excess-attraction"):
        assert (one.get(name).n, one.get(name).interval) == (2, None)
        # Two of six tasks have errors, and (4 / 6)^6 = 9 % of the resamples hold neither: too many for an interval.
        assert (two.get(name).interval, two.get(name).rests_on) == (None, {"task": 2})
        assert two.get(name).undefined == pytest.approx(0.088, abs=0.05)
        assert five.get(name).interval.n == 5 and five.get(name).undefined < 0.05


def test_without_errors_there_is_no_share_of_errors():
    card = scorecard([task(0, "ood", 10)], resamples=20)
    assert not [score for score in card.scores if "attraction" in score.name]


def test_no_share_of_errors_is_left_where_another_run_without_errors_takes_every_task():
    """Thirds added up and subtracted again can leave a rounding error as chance, over no errors."""
    options = MetaCocoOptions(resamples=0, modes=("ood",), ways=(4,), shots=(1,))
    rng = np.random.default_rng(0)
    for count in (1, 10, 13, 17, 29, 40):
        tallies = []
        for answers in (rng.integers(0, 4, (count, 4)), np.tile(np.arange(4), (count, 1))):
            rows = [
                row(
                    "ood",
                    4,
                    1,
                    index,
                    list("abcd"),
                    ["beach"] * 3 + ["dusk"],
                    ["beach", "dusk", "beach", "beach"],
                    said,
                )
                for index, said in enumerate(answers.tolist())
            ]
            listed = METACOCO.tallies(METACOCO.schema.frame(rows), options)
            tallies += [tally for tally in listed if tally.entries[0].name == "attraction"]
        misled, faultless = tallies
        assert np.isnan(misled.mixed(faultless, np.ones((1, count)))).all()


@settings(max_examples=10)
@given(record_rows())
def test_one_task_in_two_modes_counts_once_where_modes_are_joined(drawn):
    """Its supports are the same in both, so answering alike in a second mode must not narrow an interval."""
    rows = [one for one in drawn[0] if one["mode"] == "ood"]
    if not rows:
        return
    combinations = list(dict.fromkeys((one["ways"], one["shots"]) for one in rows))
    twice = rows + [one | {"mode": "blind", "unit": one["unit"].replace("ood", "blind")} for one in rows]
    alone, joined = (scorecard(some, combinations, resamples=60) for some in (rows, twice))
    for score in alone.scores:
        if "support context" in score.slice:
            again = joined.get(score.name, **score.slice)
            assert (again.value, again.interval) == (pytest.approx(score.value), score.interval)
            assert again.n == 2 * score.n


def test_a_gap_of_two_contexts_rests_on_the_fewer_tasks():
    """Here one task asks inside of the supports' context and three outside."""
    rows = [row("iid", 2, 1, 0, ["cat", "dog"], ["fog"] * 2, ["fog"] * 2, [0, 1])]
    rows += [row("ood", 2, 1, index, ["cat", "dog"], ["fog"] * 2, ["night"] * 2, [0, 0]) for index in range(3)]
    pair = {"support context": "fog", "query context": "night"}
    gap, accuracy = (scorecard(rows).get(name, **pair) for name in ("gap", "accuracy"))
    assert (gap.value, gap.rests_on, accuracy.rests_on) == (0.5, {"task": 1}, {"task": 3})


def test_pairs_of_contexts_beyond_the_most_frequent_are_counted():
    names = [f"context {number:02d}" for number in range(21)]
    rows = [
        row("ood", 2, 1, index, ["cat", "dog"], [shown] * 2, names * 2, [0] * 42) for index, shown in enumerate(names)
    ]
    card = scorecard(rows)
    listed = [score for score in card.scores if score.name == "accuracy" and "support context" in score.slice]
    [note] = card.left_out
    assert (len(listed), note.what, note.count) == (400, "pairs of contexts", 21 * 21 - 400)


def with_images(rows, images, seed=0):
    """The rows with images drawn from this many of each class, so that tasks share them."""
    rng = np.random.default_rng(seed)
    for one in rows:
        each = len(one["predicted"]) // one["ways"]
        drawn = [way * images + rng.permutation(images)[: each + one["shots"]] for way in range(one["ways"])]
        one["support"] = [int(image) for way in drawn for image in way[: one["shots"]]]
        one["query"] = [int(image) for way in drawn for image in way[one["shots"] :]]
    return rows


def hard_images(rows, hard):
    """The rows answered wrongly wherever the query is one of the hard images."""
    for one in rows:
        one["predicted"] = [1 - place // 5 if image in hard else place // 5 for place, image in enumerate(one["query"])]
        one["correct"] = sum(answer == place // 5 for place, answer in enumerate(one["predicted"]))
    return rows


def test_images_that_tasks_share_widen_a_second_interval():
    """Six images of twenty are always answered wrongly: which ones were drawn matters more than which tasks."""
    rows = hard_images(with_images([task(index, "ood", 10) for index in range(60)], 10), hard={0, 1, 2, 10, 11, 12})
    score = scorecard(rows, resamples=50).get("ood")
    alone, wider = score.interval, score.wider
    assert (alone.method, wider.method, wider.n, wider.resampled) == ("t", "shared images", 20, "image")
    assert wider.high - wider.low > 2 * (alone.high - alone.low)
    assert 0 <= wider.low < score.value < wider.high <= 1
    apart = scorecard(hard_images(with_images([task(index, "ood", 10) for index in range(60)], 10_000), hard={0}))
    score = apart.get("ood")
    assert score.wider.high - score.wider.low < 1.2 * max(score.interval.high - score.interval.low, 0.05)


def test_a_run_has_the_second_interval():
    """Rows of images must be among the columns that scoring reads."""
    run = InMemoryRun("metacoco", {"tasks": 12, "modes": "iid", "resamples": 0})
    interval = run.score("planted-learner", {"noise": 0.3}).get("iid").wider
    assert interval is not None and (interval.method, interval.resampled) == ("shared images", "image")


def test_without_single_answers_there_is_no_second_interval():
    about = (["cat", "dog"], ["beach", "dusk"], ["beach"] * 2, [0, 1])
    rows = [row("blind", 2, 1, index, *about, kept=False) for index in (0, 1)]
    score = scorecard(rows).get("blind")
    assert score.interval is not None or score.n == 2
    assert score.wider is None


def test_both_intervals_are_in_the_file_and_on_the_card():
    rows = hard_images(with_images([task(index, "ood", 10) for index in range(30)], 10), hard={0, 1, 10})
    card = scorecard(rows, resamples=50)
    again = Scorecard.from_json(card.to_json())
    assert again.get("ood").wider == card.get("ood").wider
    shown = build_card(card.get("ood"))
    assert any("if the 20 images are drawn, too" in str(text) for text in shown.values())


def test_learners_that_fail_on_other_images_are_no_different_learners():
    """Two learners fail on three in ten images of one pool: the tasks tell them apart, the draw of images does not."""
    options = MetaCocoOptions(resamples=0, modes=("ood",), ways=(2,), shots=(1,))
    claims = np.zeros(2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        runs = []
        for _ in range(2):
            hard = set(np.flatnonzero(rng.random(20) < 0.3).tolist())
            rows = hard_images(with_images([task(index, "ood", 10) for index in range(60)], 10, seed), hard)
            runs.append(METACOCO.tallies(METACOCO.schema.frame(rows), options)[0])
        paired = pair_tallies(runs, plan=SwapPlan(199), resamples=0, level=0.95, seed=0, method="jackknife")
        claims += [paired.p_values[0, 1][0] <= 0.05, paired.find_p_values(0, 1)[0] <= 0.05]
    assert claims[0] >= 8
    assert claims[1] <= 3


def test_chance_is_a_yardstick_and_no_model_is_better_by_it():
    ranked = {meaning.name: meaning.ranked for meaning in METACOCO.card.scores}
    assert not ranked.pop("attraction-chance")
    assert all(ranked.values())


def test_gaps_and_attracted_errors_are_better_when_low():
    low = {meaning.name for meaning in METACOCO.card.scores if not meaning.higher_is_better}
    assert low == {"gap", "swapped-gap", "blind-gap", "attraction", "excess-attraction"}
    headlines = [meaning.name for meaning in METACOCO.card.scores if meaning.headline]
    assert headlines == ["gap", "iid", "ood", "swapped", "blind", "shared"]


REAL = MetaCocoOptions(data={"root": "images"}, blind_supports="paper")


@pytest.mark.parametrize(
    ("mode", "ways", "shots", "options", "words"),
    [
        ("blind", 5, 1, MetaCocoOptions(blind_supports="paper"), "not comparable: the images are of the planted world"),
        ("iid", 5, 1, REAL, "not in the paper"),
        ("swapped", 10, 5, REAL, "not in the paper"),
        *(("blind", ways, shots, REAL, "comparable where") for ways in (5, 10) for shots in (1, 5)),
        ("blind", 5, 2, REAL, "not comparable: the paper has 5 and 10 ways, 1 and 5 shots"),
        ("blind", 20, 1, REAL, "not comparable: the paper has 5 and 10 ways"),
        (
            "blind",
            5,
            1,
            REAL.model_copy(update={"blind_supports": "ours"}),
            "not comparable: supports are of one context",
        ),
    ],
)
def test_only_blind_tasks_drawn_as_the_paper_draws_them_are_comparable(mode, ways, shots, options, words):
    assert describe_comparability(mode, ways, shots, options).startswith(words)


def test_the_second_interval_joins_two_variances_by_welchs_formula():
    rows = hard_images(with_images([task(index, "ood", 10) for index in range(12)], 10), hard={0, 1, 2, 10, 11, 12})
    records = METACOCO.schema.frame(rows)
    index, values = compute_task_accuracies(records, "ood")
    shares = share_out_mode(records, "ood")
    interval = widen_interval(TaskMean("ood", index, values, shares=shares), 0.9)
    (shared, images), own = shares.measure(), values.var(ddof=1) / len(values)
    assert shared > 0 and images > 1
    freedom = (own + shared) ** 2 / (own**2 / (len(values) - 1) + shared**2 / images)
    spread = Spread(np.array([np.sqrt(own + shared)]), np.array([freedom]), np.ones(1), np.zeros(1))
    low, high = jackknife_bounds(np.array([values.mean()]), spread, 0.9, (0.0, 1.0), len(values))
    assert (interval.low, interval.high) == pytest.approx((low[0], high[0]), rel=1e-12)
    assert (interval.level, interval.n) == (0.9, 20)


@pytest.mark.parametrize("gone", ["query", "support"])
def test_without_the_rows_of_images_there_are_no_shares(gone):
    records = METACOCO.schema.frame(with_images([task(index, "ood", 10) for index in range(4)], 10))
    assert share_out_mode(records, "ood") is not None
    assert share_out_mode(records.drop(gone), "ood") is None
    assert share_out_mode(records, "iid") is None


def sliced(*settings):
    """A scorecard with a score of each of these settings of ways and shots, and one of all."""
    scores = [Score("accuracy", 0.5, 3, slice={"ways": str(ways), "shots": str(shots)}) for ways, shots in settings]
    return Scorecard("metacoco", "1", "", (Score("accuracy", 0.5, 3), *scores))


def test_the_setting_of_the_headline_is_the_one_that_no_slice_names():
    records = pl.DataFrame({"ways": [5, 5, 10, 10], "shots": [1, 5, 1, 5]})
    assert find_headline_setting(records, sliced((5, 5), (10, 1), (10, 5))) == (5, 1)
    assert find_headline_setting(records, sliced((5, 1), (10, 1), (10, 5))) == (5, 5)
    # Where no score is sliced, the smallest is.
    assert find_headline_setting(records, sliced()) == (5, 1)
    options = MetaCocoOptions(ways=(5, 10), shots=(1, 5))
    assert find_published_slice(sliced((5, 5), (10, 1), (5, 1)), options) == {"ways": "10", "shots": "5"}
    assert find_published_slice(sliced((5, 5), (10, 1)), options) == {}
    assert find_published_slice(sliced((5, 5), (10, 1), (5, 1), (10, 5)), options) == {}
    # A slice by ways or shots alone is no setting.
    partial = Scorecard("metacoco", "1", "", (Score("accuracy", 0.5, 3, slice={"ways": "5"}),))
    assert find_published_slice(partial, MetaCocoOptions(ways=(5,), shots=(1,))) == {"ways": "5", "shots": "1"}


def test_a_tasks_quality_is_its_share_of_right_answers():
    records = pl.DataFrame({"unit": ["a", "b"], "correct": [3, 0], "queries": [4, 5]})
    found = compute_unit_qualities(records, MetaCocoOptions())
    assert found.to_dicts() == [{"unit": "a", "task-accuracy": 0.75}, {"unit": "b", "task-accuracy": 0.0}]


def test_tasks_without_single_answers_are_noted_first():
    names = [f"context {number:02d}" for number in range(21)]
    rows = [
        row("ood", 2, shots, index, ["cat", "dog"], [shown] * 2, names * 2, [0] * 42)
        for shots in (1, 5)
        for index, shown in enumerate(names)
    ]
    about = (["cat", "dog"], ["beach", "dusk"], ["beach"] * 2, [0, 1])
    rows += [row("blind", 2, 1, index, *about, kept=False) for index in (0, 1)]
    card = scorecard(rows, ways=(2,), shots=(1, 5))
    assert [(note.what, note.count) for note in card.left_out] == [
        ("tasks without single answers", 2),
        *[("pairs of contexts", 21 * 21 - 400)] * 2,
    ]
