"""The scores of MetaCoCo in words.

All queries of some tasks as one long table of numbers, for slices by concept and by context.

Whether an accuracy may stand beside the paper's.

Scores of MetaCoCo that are means over tasks: the accuracy of every mode, and what a task loses between two modes.

The scorecard gives them t intervals, as in the paper; comparisons of runs take them as sums over tasks.

MetaCoCo by concept, by context of support and query, and where wrong answers go: scores of single queries.

Rows and columns of the sums follow from what was asked and never from what was answered, so that two runs of the same
tasks can be compared.

Scores of MetaCoCo: accuracy of every mode and the gaps between modes; `slices` has those of single queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.stats import t_interval
from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.tally import Entry, SumTally, score_tally
from hardlook.metacoco.options import MetaCocoOptions

if TYPE_CHECKING:
    import polars as pl


SCORES = (
    ScoreMeaning("gap", "IID-OOD gap", "accuracy lost when queries leave their support's context", False, True),
    ScoreMeaning("iid", "IID accuracy", "queries in the context of their class's supports", headline=True),
    ScoreMeaning("ood", "OOD accuracy", "queries in other contexts than their class's supports", headline=True),
    ScoreMeaning(
        "swapped", "swapped accuracy", "queries in the context in which another class was shown", headline=True
    ),
    ScoreMeaning("blind", "blind accuracy", "queries in any context", headline=True),
    ScoreMeaning("shared", "shared accuracy", "all classes of a task in one context", headline=True),
    ScoreMeaning("swapped-gap", "IID-swapped gap", "accuracy lost when contexts are swapped between classes", False),
    ScoreMeaning("blind-gap", "IID-blind gap", "accuracy lost when context is ignored in the queries", False),
    ScoreMeaning(
        "attraction",
        "context-attracted errors",
        "share of errors whose answered class was shown in the query's context",
        False,
    ),
    ScoreMeaning(
        "attraction-chance",
        "attraction by chance",
        "that share if errors fell on all wrong classes alike: a yardstick, no higher or lower one is better",
        ranked=False,
    ),
    ScoreMeaning("excess-attraction", "attraction beyond chance", "context-attracted errors less chance", False),
    ScoreMeaning("accuracy", "accuracy", "share of queries answered rightly, of a concept or a pair of contexts"),
)


Codes = NDArray[np.int64]


@dataclass(frozen=True)
class QueryAnswers:
    """One entry a query: its task, its class and the answered one, and the contexts around it.

    `task` numbers the records; `concept`, `query_context`, `own_context` (of its class's supports) and
    `answered_context` (of the answered class's supports) number the names, -1 where supports are of several contexts.
    `rivals` counts the wrong classes whose supports show the query's context.
    """

    concepts: tuple[str, ...]
    contexts: tuple[str, ...]
    task: Codes
    concept: Codes
    right: NDArray[np.bool_]
    query_context: Codes
    own_context: Codes
    answered_context: Codes
    rivals: Codes
    ways: Codes

    @property
    def attracted(self) -> NDArray[np.bool_]:
        """Wrong answers whose class was shown in the query's own context."""
        led: NDArray[np.bool_] = ~self.right & (self.answered_context == self.query_context)
        return led


def query_answers(records: pl.DataFrame) -> QueryAnswers:
    """The queries of records that kept their answers; those that did not add nothing."""
    kept = records.filter(records["predicted"].list.len() > 0)
    if kept.is_empty():
        none = np.zeros(0, np.int64)
        return QueryAnswers((), (), none, none, none.astype(bool), none, none, none, none, none)
    concepts, concept, first_class = _number_labels(kept["concepts"])
    contexts, context, first_context = _number_labels(kept["contexts"])
    ways = kept["ways"].to_numpy().astype(np.int64)
    queries = kept["predicted"].list.len().to_numpy().astype(np.int64)
    task = np.repeat(np.arange(len(kept)), queries)
    place = np.arange(len(task)) - np.repeat(np.cumsum(queries) - queries, queries)
    # Queries stand class after class, equally many of each.
    truth = place // (queries // ways)[task]
    answered = _flat(kept["predicted"])
    # Of each class of each task the context of its supports, -1 where those are of several.
    shown = _flat(kept["support_context"])
    owner = np.repeat(np.arange(len(kept)), ways)
    support = np.where(shown < 0, -1, context[first_context[owner] + np.maximum(shown, 0)])
    asked = context[first_context[task] + _flat(kept["query_context"])]
    first_support = (np.cumsum(ways) - ways)[task]
    rivals = np.zeros(len(task), np.int64)
    for way in range(int(ways.max())):
        other = (way < ways[task]) & (way != truth)
        rivals += other & (support[np.where(other, first_support + way, 0)] == asked)
    return QueryAnswers(
        concepts=concepts,
        contexts=contexts,
        task=task,
        concept=concept[first_class[task] + truth],
        right=answered == truth,
        query_context=asked,
        own_context=support[first_support + truth],
        answered_context=support[first_support + answered],
        rivals=rivals,
        ways=ways[task],
    )


def _number_labels(texts: pl.Series) -> tuple[tuple[str, ...], Codes, Codes]:
    """All names of texts with a name a line, in order; the number of each line; where the lines of each text begin."""
    import polars as pl

    lines = texts.str.split("\n")
    flat, counts = lines.explode(), lines.list.len().to_numpy().astype(np.int64)
    names = sorted(flat.unique().to_list())
    numbers = flat.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    return tuple(names), numbers, np.cumsum(counts) - counts


def _flat(lists: pl.Series) -> Codes:
    found: Codes = lists.explode().to_numpy().astype(np.int64)
    return found


PRINTED = {(5, 1), (5, 5), (10, 1), (10, 5)}


def describe_comparability(mode: str, ways: int, shots: int, options: MetaCocoOptions) -> str:
    """One sentence; the paper prints accuracies of tasks drawn without regard to context, as we infer.

    >>> describe_comparability("iid", 5, 1, MetaCocoOptions())
    'not comparable: the images are of the planted world'
    """
    if options.planted:
        return "not comparable: the images are of the planted world"
    if mode != "blind":
        return "not in the paper: it draws this comparison and prints no numbers"
    if (ways, shots) not in PRINTED:
        return "not comparable: the paper has 5 and 10 ways, 1 and 5 shots"
    if options.blind_supports != "paper":
        return "not comparable: supports are of one context a class; --blind-supports paper ignores context there too"
    return "comparable where the images are MetaCoCo's; that its tables are blind tasks is our inference"


GAPS = {"gap": ("iid", "ood"), "swapped-gap": ("iid", "swapped"), "blind-gap": ("iid", "blind")}

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class TaskMean:
    """One score as values of single tasks: `index` (n,) their numbers, ascending, `values` (n,) what each got."""

    name: str
    index: NDArray[np.int64]
    values: Numbers
    comparable: str = ""


def task_accuracies(records: pl.DataFrame, mode: str) -> tuple[NDArray[np.int64], Numbers]:
    """The numbers of a mode's tasks, ascending, and the accuracy of each."""
    chosen = records.filter(records["mode"] == mode).sort("index")
    return chosen["index"].to_numpy(), chosen["correct"].to_numpy() / chosen["queries"].to_numpy()


def task_means(records: pl.DataFrame, options: MetaCocoOptions) -> list[TaskMean]:
    """Of records of one choice of ways and shots: every mode that was asked for, then the gaps; some of no task."""
    ways, shots = int(records["ways"][0]), int(records["shots"][0])
    means = [
        TaskMean(mode, *task_accuracies(records, mode), describe_comparability(mode, ways, shots, options))
        for mode in options.modes
    ]
    for name, (first, second) in GAPS.items():
        if name == "blind-gap" and options.blind_supports != "ours":
            continue  # its supports are not those of the other modes
        means.append(_gap(name, task_accuracies(records, first), task_accuracies(records, second)))
    return means


def tally_means(means: Sequence[TaskMean], where: dict[str, str]) -> SumTally:
    """The scores as sums over tasks; a task in several modes has the same supports in all, and so is one row.

    >>> iid = TaskMean("iid", np.array([0, 1]), np.array([1.0, 0.5]))
    >>> ood = TaskMean("ood", np.array([1, 2]), np.array([0.5, 0.25]))
    >>> tally_means([iid, ood], {}).values()
    array([[0.75 , 0.375]])
    """
    tasks = np.unique(np.concatenate([one.index for one in means]))
    sums = np.zeros((len(tasks), len(means), 2))
    for place, one in enumerate(means):
        sums[np.searchsorted(tasks, one.index), place] = np.stack([one.values, np.ones(len(one.values))], axis=1)
    entries = tuple(Entry(one.name, len(one.values), where, comparable=one.comparable) for one in means)
    return SumTally(entries, sums.reshape(len(tasks), -1), shares, ("metacoco", "tasks", *where.values()), "task")


def shares(totals: Numbers) -> Numbers:
    """(m, 2 K) sums and counts in turn to (m, K) means; NaN where the count is 0."""
    return ratio(totals.reshape(len(totals), -1, 2))


def _gap(name: str, one: tuple[NDArray[np.int64], Numbers], other: tuple[NDArray[np.int64], Numbers]) -> TaskMean:
    """The difference of the same task in two modes: same classes, same supports, other queries."""
    both = np.intersect1d(one[0], other[0])
    return TaskMean(name, both, one[1][np.isin(one[0], both)] - other[1][np.isin(other[0], both)])


MISLED = ("ood", "swapped", "blind")

ATTRACTION = ("attraction", "attraction-chance", "excess-attraction")

MOST_PAIRS = 400

Integers = NDArray[np.float64]

Places = NDArray[np.int64]


def tally_queries(
    records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions
) -> tuple[list[SumTally], list[LeftOut]]:
    """The scores of records of one choice of ways and shots, and what was left out of them."""
    kept = records.filter(records["predicted"].list.len() > 0)
    first = next((mode for mode in MISLED if mode in options.modes), None)
    tallies: list[SumTally] = []
    for mode in options.modes:
        answers = query_answers(kept.filter(kept["mode"] == mode).sort("index"))
        if len(answers.task):
            at = {**where, "mode": mode}
            tallies.append(_concepts(answers, at))
            # Supports of several contexts are in none that a wrong answer could have followed.
            if mode in MISLED and (answers.own_context >= 0).any():
                key = ("metacoco", "attraction", *at.values())
                tallies.append(_attraction(answers, where if mode == first else at, key))
    # One context for all classes tells nothing about two contexts.
    apart = kept.filter(kept["mode"] != "shared").sort("mode", "index")
    together = query_answers(apart)
    if not (together.own_context >= 0).any():
        return tallies, []
    pairs, left_out = _context_pairs(together, apart["index"].to_numpy(), where)
    return [*tallies, pairs], left_out


def _concepts(answers: QueryAnswers, where: dict[str, str]) -> SumTally:
    concepts = len(answers.concepts)
    sums = _cell_sums(answers.task, answers.concept, answers.right, (int(answers.task.max()) + 1, concepts))
    counts = np.bincount(answers.concept, minlength=concepts)
    entries = tuple(
        Entry("accuracy", int(count), {**where, "concept": name})
        for name, count in zip(answers.concepts, counts, strict=True)
    )
    return SumTally(entries, sums, shares, ("metacoco", "concept", *where.values()), "task")


def _context_pairs(answers: QueryAnswers, index: Places, where: dict[str, str]) -> tuple[SumTally, list[LeftOut]]:
    """Accuracy by the context of the class's supports and of the query, and what leaving the former costs.

    A gap is the accuracy at home less that abroad, of the same supports: both from the same resamples. `index` numbers
    the tasks: one task in several modes has the same supports, and so counts once.
    """
    size = len(answers.contexts)
    shown = answers.own_context >= 0
    pair = answers.own_context * size + answers.query_context
    every, counts = np.unique(pair[shown], return_counts=True)
    listed = np.sort(np.argsort(-counts, kind="stable")[:MOST_PAIRS])
    pairs, counts = every[listed], counts[listed]
    inside = shown & np.isin(pair, pairs)
    cell = np.searchsorted(pairs, pair[inside])
    sums = _cell_sums(answers.task[inside], cell, answers.right[inside], (len(index), len(pairs)))
    home = np.searchsorted(pairs, pairs // size * (size + 1)).clip(max=len(pairs) - 1)
    away = np.flatnonzero((pairs[home] == pairs // size * (size + 1)) & (pairs // size != pairs % size))

    def statistic(totals: Integers) -> Integers:
        share = shares(totals)
        return np.concatenate([share, share[:, home[away]] - share[:, away]], axis=1)

    labels = [
        {**where, "support context": answers.contexts[one // size], "query context": answers.contexts[one % size]}
        for one in pairs
    ]
    entries = [Entry("accuracy", int(n), label) for n, label in zip(counts, labels, strict=True)]
    entries += [Entry("gap", int(counts[place]), labels[place]) for place in away]
    tally = SumTally(tuple(entries), sums, statistic, ("metacoco", "contexts", *where.values()), "task", index)
    if len(every) == len(pairs):
        return tally, []
    why = f"those of fewer queries than the first {MOST_PAIRS} have no scores of their own"
    return tally, [LeftOut("pairs of contexts", len(every) - len(pairs), why)]


def _cell_sums(task: Places, cell: Places, right: NDArray[np.bool_], shape: tuple[int, int]) -> Any:
    """Right answers and answers of each cell in turn, (tasks, 2 cells), sparse."""
    from scipy.sparse import coo_array, csr_array

    tasks, cells = shape
    row = np.concatenate([task, task])
    column = np.concatenate([cell * 2, cell * 2 + 1])
    data = np.concatenate([right.astype(np.float64), np.ones(len(cell))])
    return csr_array(coo_array((data, (row, column)), shape=(tasks, 2 * cells)))


def _attraction(answers: QueryAnswers, where: dict[str, str], key: tuple[str, ...]) -> SumTally:
    """The share of errors that go to a class shown in the query's context, and what chance would give.

    Chance: a wrong answer falls on each wrong class alike. Only queries for which some wrong class is shown in their
    context can be attracted; the others count among the errors all the same, in both numbers.
    """
    wrong = ~answers.right
    by_chance = answers.rivals / np.maximum(answers.ways - 1, 1)
    sums = np.stack([answers.attracted, wrong, np.where(wrong, by_chance, 0.0)], axis=1).astype(np.float64)
    # Errors of one task alone are in a resample or not: their share is the same wherever it exists.
    alone = 1 if len(np.unique(answers.task[wrong])) == 1 else None
    entries = tuple(Entry(name, int(wrong.sum()), where, clusters=alone) for name in ATTRACTION)
    return SumTally(entries, sums, _attracted_shares, key, "task", answers.task)


def _attracted_shares(totals: Integers) -> Integers:
    # A run without errors, taken from one with some, may leave a rounding error of chance over none.
    errors = np.where(totals[:, 1] > 0, totals[:, 1], np.nan)
    share, chance = totals[:, 0] / errors, totals[:, 2] / errors
    return np.stack([share, chance, share - chance], axis=1)


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: MetaCocoOptions) -> Scorecard:
    """Every score; those of the first ways and shots are the headline, the others are slices."""
    scores: list[Score] = []
    left_out: list[LeftOut] = []
    for chosen, where in _choices(records, options):
        scores += [_mean(one, where, options) for one in task_means(chosen, options) if len(one.values)]
        tallies, notes = tally_queries(chosen, where, options)
        scores += [score for tally in tallies for score in score_tally(tally, options)]
        left_out += notes
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=(*_left_out(records), *left_out))


def tally_records(records: pl.DataFrame, options: MetaCocoOptions) -> list[SumTally]:
    """What all these scores are made from, those with a t interval too."""
    tallies: list[SumTally] = []
    for chosen, where in _choices(records, options):
        tallies.append(tally_means(task_means(chosen, options), where))
        tallies += tally_queries(chosen, where, options)[0]
    return tallies


def headline_choice(records: pl.DataFrame, scorecard: Scorecard) -> tuple[int, int]:
    """The ways and shots that scores without a slice are of: those that are drawn and that no slice names."""
    drawn = set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True))
    sliced = {
        (int(score.slice["ways"]), int(score.slice["shots"]))
        for score in scorecard.scores
        if {"ways", "shots"} <= set(score.slice)
    }
    return min(drawn - sliced)


def _choices(records: pl.DataFrame, options: MetaCocoOptions) -> Iterator[tuple[pl.DataFrame, dict[str, str]]]:
    """The records of each choice of ways and shots, in the order of the options, and the slice it is."""
    combinations = sorted(set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True)))
    order = {ways: place for place, ways in enumerate(options.ways)}
    shots_order = {shots: place for place, shots in enumerate(options.resolved()[0])}
    combinations.sort(key=lambda pair: (order.get(pair[0], 99), shots_order.get(pair[1], 99)))
    for place, (ways, shots) in enumerate(combinations):
        chosen = records.filter((records["ways"] == ways) & (records["shots"] == shots))
        yield chosen, {} if place == 0 else {"ways": str(ways), "shots": str(shots)}


def _mean(one: TaskMean, where: dict[str, str], options: MetaCocoOptions) -> Score:
    interval = t_interval(one.values, options.level, "task")
    return Score(
        one.name,
        float(one.values.mean()),
        len(one.values),
        interval if interval.defined else None,
        where,
        comparable=one.comparable,
    )


def _left_out(records: pl.DataFrame) -> tuple[LeftOut, ...]:
    without = int((records["predicted"].list.len() == 0).sum())
    if not without:
        return ()
    return (LeftOut("tasks without single answers", without, "the run was told not to keep them"),)


def unit_qualities(records: pl.DataFrame, options: MetaCocoOptions) -> pl.DataFrame:
    """`unit` and `task-accuracy`: the share of right answers, of the task in its mode."""
    import polars as pl

    return records.select("unit", (pl.col("correct") / pl.col("queries")).alias("task-accuracy"))
