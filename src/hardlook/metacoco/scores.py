"""Scores of MetaCoCo from records: accuracies of modes, gaps between them, slices by concept and context, attraction.

A setting is a number of ways and a number of shots. Means over tasks have t intervals, as in the paper; to compare
runs they are tallied as sums over tasks. Scores of single queries are sums over tasks too. The rows and columns of a
tally depend on the tasks and never on the answers, so that two runs on the same tasks can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.stats import Interval, t_interval
from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.stats.jackknife import Spread, add_variances, jackknife_bounds
from hardlook.harness.stats.shared_draws import ImageShares, share_out_errors
from hardlook.harness.tally import DIFFERENCE, SHARE, Entry, SumTally, score_tally, with_ranges
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

PUBLISHED_SETTINGS = {(5, 1), (5, 5), (10, 1), (10, 5)}  # ways and shots of the paper's tables
GAPS = {"gap": ("iid", "ood"), "swapped-gap": ("iid", "swapped"), "blind-gap": ("iid", "blind")}
MISLEADING_MODES = ("ood", "swapped", "blind")  # queries can be in the context of another class's supports
ATTRACTION = ("attraction", "attraction-chance", "excess-attraction")
RANGES = dict.fromkeys((*GAPS, "excess-attraction"), DIFFERENCE)
MAX_PAIRS = 400  # pairs of contexts with scores of their own

Codes = NDArray[np.int64]
Values = NDArray[np.float64]


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: MetaCocoOptions) -> Scorecard:
    """Every score; those of the first setting are the headline, those of the others are slices."""
    scores: list[Score] = []
    left_out: list[LeftOut] = []
    for chosen, where in _split_by_setting(records, options):
        for mean in average_tasks(chosen, options):
            if len(mean.values):
                interval = t_interval(mean.values, options.level, "task", RANGES.get(mean.name, SHARE))
                bounds = interval if interval.defined else None
                value, n = math.fsum(mean.values) / len(mean.values), len(mean.values)
                error = float(np.std(mean.values)) / math.sqrt(n) if n > 1 else None
                more: dict[str, Any] = {"comparable": mean.comparable, "standard_error": error, "rests_on": {"task": n}}
                more["wider"] = widen_interval(mean, options.level) if bounds else None
                scores.append(Score(mean.name, value, n, bounds, where, **more))
        tallies, notes = tally_queries(chosen, where, options)
        scores += [score for tally in tallies for score in score_tally(tally, options)]
        left_out += notes
    if without := int((records["predicted"].list.len() == 0).sum()):
        left_out.insert(0, LeftOut("tasks without single answers", without, "the run was told not to keep them"))
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=tuple(left_out))


def tally_records(records: pl.DataFrame, options: MetaCocoOptions) -> list[SumTally]:
    """The sums over tasks behind all scores, those with a t interval included."""
    tallies: list[SumTally] = []
    for chosen, where in _split_by_setting(records, options):
        tallies.append(tally_means(average_tasks(chosen, options), where))
        tallies += tally_queries(chosen, where, options)[0]
    return tallies


def compute_unit_qualities(records: pl.DataFrame, options: MetaCocoOptions) -> pl.DataFrame:
    """Columns `unit` and `task-accuracy`: the share of right answers in a task of one mode."""
    import polars as pl

    return records.select("unit", (pl.col("correct") / pl.col("queries")).alias("task-accuracy"))


def find_headline_setting(records: pl.DataFrame, scorecard: Scorecard) -> tuple[int, int]:
    """The setting of the scores without a slice: the one in the records that no slice names."""
    drawn = set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True))
    return min(drawn - _list_sliced_settings(scorecard))


def find_published_slice(scorecard: Scorecard, options: MetaCocoOptions) -> dict[str, str]:
    """The setting of the scores over all units: the only one of the options that no slice names; {} if ambiguous.

    >>> find_published_slice(Scorecard("metacoco", "1", ""), MetaCocoOptions(ways=(10,), shots=(5,)))
    {'ways': '10', 'shots': '5'}
    """
    unsliced = set(product(options.ways, options.resolved()[0])) - _list_sliced_settings(scorecard)
    if len(unsliced) != 1:
        return {}
    [(ways, shots)] = unsliced
    return {"ways": str(ways), "shots": str(shots)}


def _list_sliced_settings(scorecard: Scorecard) -> set[tuple[int, int]]:
    return {
        (int(score.slice["ways"]), int(score.slice["shots"]))
        for score in scorecard.scores
        if {"ways", "shots"} <= set(score.slice)
    }


def _split_by_setting(records: pl.DataFrame, options: MetaCocoOptions) -> Iterator[tuple[pl.DataFrame, dict[str, str]]]:
    """The records of each setting, in the order of the options, and its slice ({} for the first)."""
    drawn = set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True))
    listed = [pair for pair in product(options.ways, options.resolved()[0]) if pair in drawn]
    for number, (ways, shots) in enumerate([*listed, *sorted(drawn - set(listed))]):
        chosen = records.filter((records["ways"] == ways) & (records["shots"] == shots))
        yield chosen, {} if number == 0 else {"ways": str(ways), "shots": str(shots)}


def describe_comparability(mode: str, ways: int, shots: int, options: MetaCocoOptions) -> str:
    """Whether an accuracy is comparable with the paper's, whose tasks ignore context, as we infer.

    >>> describe_comparability("iid", 5, 1, MetaCocoOptions())
    'not comparable: the images are of the planted world'
    """
    if options.planted:
        return "not comparable: the images are of the planted world"
    if mode != "blind":
        return "not in the paper: it draws this comparison and prints no numbers"
    if (ways, shots) not in PUBLISHED_SETTINGS:
        return "not comparable: the paper has 5 and 10 ways, 1 and 5 shots"
    if options.blind_supports != "paper":
        return "not comparable: supports are of one context a class; --blind-supports paper ignores context there too"
    return "comparable where the images are MetaCoCo's; that its tables are blind tasks is our inference"


@dataclass(frozen=True)
class TaskMean:
    """A score that is a mean over tasks: `index` (n,) the tasks' numbers, ascending, and `values` (n,) of each.

    `shares` says what each image contributes to its error; None where single answers were not kept.
    """

    name: str
    index: Codes
    values: Values
    comparable: str = ""
    shares: ImageShares | None = None


def average_tasks(records: pl.DataFrame, options: MetaCocoOptions) -> list[TaskMean]:
    """The modes of the options, then the gaps, of records of one setting; some may have no task."""
    ways, shots = int(records["ways"][0]), int(records["shots"][0])
    means = []
    for mode in options.modes:
        words = describe_comparability(mode, ways, shots, options)
        means.append(TaskMean(mode, *compute_task_accuracies(records, mode), words, share_out_mode(records, mode)))
    for name, (first, second) in GAPS.items():
        if name == "blind-gap" and options.blind_supports != "ours":
            continue  # its supports are not those of the other modes
        # The same task in two modes: same classes, same supports, other queries.
        first_index, first_values = compute_task_accuracies(records, first)
        second_index, second_values = compute_task_accuracies(records, second)
        both = np.intersect1d(first_index, second_index)
        values = first_values[np.isin(first_index, both)] - second_values[np.isin(second_index, both)]
        chosen = records.filter(records["index"].is_in(both.tolist()))
        inside, outside = (share_out_mode(chosen, mode) for mode in (first, second))
        shares = inside.minus(outside) if inside is not None and outside is not None else None
        means.append(TaskMean(name, both, values, shares=shares))
    return means


def share_out_mode(records: pl.DataFrame, mode: str) -> ImageShares | None:
    """What each image contributes, as query and as support, to the error of a mode's mean accuracy; None if unknown."""
    chosen = records.filter(records["mode"] == mode).sort("index")
    if not len(chosen) or not {"query", "support"} <= set(chosen.columns):
        return None
    answered, asked, shown = (chosen[name].list.len().to_numpy() for name in ("predicted", "query", "support"))
    ways = int(chosen["ways"][0])
    # Tasks of one setting have as many queries each; a run that keeps no answers has none.
    if not answered[0] or not shown[0] or len({*answered, *asked}) > 1 or len({*shown}) > 1:
        return None
    answers = read_answers(chosen)
    shape = (len(chosen), ways, int(answered[0]) // ways)
    shares = share_out_errors(
        answers.right.reshape(shape),
        answers.concept.reshape(shape)[:, :, 0],
        _flatten(chosen["support"]).reshape(len(chosen), ways, -1),
        _flatten(chosen["query"]).reshape(shape),
    )
    return replace(shares, task=chosen["index"].to_numpy().astype(np.int64)[shares.task])


def widen_interval(mean: TaskMean, level: float) -> Interval | None:
    """The interval that covers the draw of the images, too; None where single answers were not kept."""
    if mean.shares is None:
        return None
    n, variance = len(mean.values), mean.shares.measure()
    error = np.array([mean.values.std(ddof=1) / math.sqrt(n)])
    tasks = Spread(error, np.array([n - 1.0]), np.ones(1), np.zeros(1))
    both = add_variances(tasks, [(np.array([variance[0]]), variance[1])])
    value = np.array([math.fsum(mean.values) / n])
    low, high = jackknife_bounds(value, both, level, RANGES.get(mean.name, SHARE), n)
    images = len(np.unique(mean.shares.image))
    interval = Interval(float(low[0]), float(high[0]), level, "shared images", images, "image")
    return interval if interval.defined else None


def compute_task_accuracies(records: pl.DataFrame, mode: str) -> tuple[Codes, Values]:
    """The numbers of a mode's tasks, ascending, and the accuracy of each."""
    chosen = records.filter(records["mode"] == mode).sort("index")
    return chosen["index"].to_numpy(), chosen["correct"].to_numpy() / chosen["queries"].to_numpy()


def tally_means(means: Sequence[TaskMean], where: dict[str, str]) -> SumTally:
    """The means as sums over tasks; a task has the same supports in all modes, so it is one row.

    >>> iid = TaskMean("iid", np.array([0, 1]), np.array([1.0, 0.5]))
    >>> ood = TaskMean("ood", np.array([1, 2]), np.array([0.5, 0.25]))
    >>> tally_means([iid, ood], {}).values()
    array([[0.75 , 0.375]])
    """
    tasks = np.unique(np.concatenate([one.index for one in means]))
    sums = np.zeros((len(tasks), len(means), 2))
    for column, one in enumerate(means):
        sums[np.searchsorted(tasks, one.index), column] = np.stack([one.values, np.ones(len(one.values))], axis=1)
    entries = tuple(Entry(one.name, len(one.values), where, comparable=one.comparable) for one in means)
    return SumTally(
        with_ranges(entries, RANGES),
        sums.reshape(len(tasks), -1),
        compute_shares,
        ("metacoco", "tasks", *where.values()),
        "task",
        shares=tuple(one.shares for one in means),
    )


def compute_shares(totals: Values) -> Values:
    """(m, 2 K) sums and counts in turn to (m, K) means; NaN where the count is 0."""
    return ratio(totals.reshape(len(totals), -1, 2))


def tally_queries(
    records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions
) -> tuple[list[SumTally], list[LeftOut]]:
    """Scores of single queries, of records of one setting, and what was left out of them."""
    kept = records.filter(records["predicted"].list.len() > 0)
    first = next((mode for mode in MISLEADING_MODES if mode in options.modes), None)
    tallies: list[SumTally] = []
    for mode in options.modes:
        answers = read_answers(kept.filter(kept["mode"] == mode).sort("index"))
        if len(answers.task):
            at = {**where, "mode": mode}
            tallies.append(_tally_concepts(answers, at))
            # Without a single support context no wrong answer can be attracted by it.
            if mode in MISLEADING_MODES and (answers.support_context >= 0).any():
                key = ("metacoco", "attraction", *at.values())
                tallies.append(_tally_attraction(answers, where if mode == first else at, key))
    # Tasks with one context for all classes say nothing about two contexts.
    chosen = kept.filter(kept["mode"] != "shared").sort("mode", "index")
    pooled = read_answers(chosen)
    if not (pooled.support_context >= 0).any():
        return tallies, []
    pairs, left_out = _tally_context_pairs(pooled, chosen["index"].to_numpy(), where)
    return [*tallies, pairs], left_out


def _tally_concepts(answers: QueryAnswers, where: dict[str, str]) -> SumTally:
    concepts = len(answers.concepts)
    sums = _sum_cells(answers.task, answers.concept, answers.right, (int(answers.task.max()) + 1, concepts))
    counts = np.bincount(answers.concept, minlength=concepts)
    tasks = _count_tasks(answers.task, answers.concept, concepts)
    entries = tuple(
        Entry("accuracy", int(count), {**where, "concept": name}, clusters=int(own))
        for name, count, own in zip(answers.concepts, counts, tasks, strict=True)
    )
    return SumTally(with_ranges(entries), sums, compute_shares, ("metacoco", "concept", *where.values()), "task")


def _tally_context_pairs(answers: QueryAnswers, index: Codes, where: dict[str, str]) -> tuple[SumTally, list[LeftOut]]:
    """Accuracy by the contexts of the supports and of the query, and the gap to queries in the supports' context.

    Both accuracies of a gap are of the same supports and the same resamples. `index` numbers the tasks: a task has the
    same supports in all modes, so it counts once.
    """
    size = len(answers.contexts)
    shown = answers.support_context >= 0
    pair = answers.support_context * size + answers.query_context
    every, counts = np.unique(pair[shown], return_counts=True)
    listed = np.sort(np.argsort(-counts, kind="stable")[:MAX_PAIRS])
    pairs, counts = every[listed], counts[listed]
    inside = shown & np.isin(pair, pairs)
    cell = np.searchsorted(pairs, pair[inside])
    sums = _sum_cells(answers.task[inside], cell, answers.right[inside], (len(index), len(pairs)))
    diagonal = np.searchsorted(pairs, pairs // size * (size + 1)).clip(max=len(pairs) - 1)
    outside = np.flatnonzero((pairs[diagonal] == pairs // size * (size + 1)) & (pairs // size != pairs % size))

    def statistic(totals: Values) -> Values:
        share = compute_shares(totals)
        return np.concatenate([share, share[:, diagonal[outside]] - share[:, outside]], axis=1)

    labels = [
        {**where, "support context": answers.contexts[one // size], "query context": answers.contexts[one % size]}
        for one in pairs
    ]
    # The same task in two modes is one: `index` numbers them.
    tasks = _count_tasks(index[answers.task[inside]], cell, len(pairs)).tolist()
    entries = [
        Entry("accuracy", int(n), label, clusters=own) for n, label, own in zip(counts, labels, tasks, strict=True)
    ]
    entries += [
        Entry("gap", int(counts[place]), labels[place], clusters=min(tasks[place], tasks[diagonal[place]]))
        for place in outside.tolist()
    ]
    tally = SumTally(
        with_ranges(entries, RANGES), sums, statistic, ("metacoco", "contexts", *where.values()), "task", index
    )
    if len(every) == len(pairs):
        return tally, []
    why = f"those of fewer queries than the first {MAX_PAIRS} have no scores of their own"
    return tally, [LeftOut("pairs of contexts", len(every) - len(pairs), why)]


def _count_tasks(task: Codes, cell: Codes, cells: int) -> Codes:
    """(cells,): in how many tasks each cell occurs."""
    pairs = np.unique(np.stack([cell, task], axis=1), axis=0)
    return np.bincount(pairs[:, 0], minlength=cells)


def _sum_cells(task: Codes, cell: Codes, right: NDArray[np.bool_], shape: tuple[int, int]) -> Any:
    """(tasks, 2 cells) sparse: the right answers and all answers of each cell."""
    from scipy.sparse import coo_array, csr_array

    tasks, cells = shape
    row = np.concatenate([task, task])
    column = np.concatenate([cell * 2, cell * 2 + 1])
    data = np.concatenate([right.astype(np.float64), np.ones(len(cell))])
    return csr_array(coo_array((data, (row, column)), shape=(tasks, 2 * cells)))


def _tally_attraction(answers: QueryAnswers, where: dict[str, str], key: tuple[str, ...]) -> SumTally:
    """The share of errors that go to a class whose supports are in the query's context, and that share by chance.

    By chance a wrong answer falls on each wrong class alike. Only queries with such a wrong class can be attracted;
    the errors of the others count in both shares all the same.
    """
    wrong = ~answers.right
    by_chance = answers.misleading_classes / np.maximum(answers.ways - 1, 1)
    sums = np.stack([answers.attracted, wrong, np.where(wrong, by_chance, 0.0)], axis=1).astype(np.float64)
    # With errors in one task only, every resample that has errors has the same share: no interval.
    tasks = len(np.unique(answers.task[wrong]))
    entries = tuple(Entry(name, int(wrong.sum()), where, clusters=tasks) for name in ATTRACTION)
    return SumTally(with_ranges(entries, RANGES), sums, _compute_attraction, key, "task", answers.task)


def _compute_attraction(totals: Values) -> Values:
    # The difference of two runs can have no errors and a rounding error as chance: no share there.
    errors = np.where(totals[:, 1] > 0, totals[:, 1], np.nan)
    share, chance = totals[:, 0] / errors, totals[:, 2] / errors
    return np.stack([share, chance, share - chance], axis=1)


@dataclass(frozen=True)
class QueryAnswers:
    """One entry per query: its task, its class, whether the answer is right, and the contexts of query and supports.

    `task` numbers the records; `concept`, `query_context`, `support_context` (of its class's supports) and
    `answered_context` (of the answered class's supports) number the names, -1 where supports are of several contexts.
    `misleading_classes` counts the wrong classes whose supports are in the query's context.
    """

    concepts: tuple[str, ...]
    contexts: tuple[str, ...]
    task: Codes
    concept: Codes
    right: NDArray[np.bool_]
    query_context: Codes
    support_context: Codes
    answered_context: Codes
    misleading_classes: Codes
    ways: Codes

    @property
    def attracted(self) -> NDArray[np.bool_]:
        """Wrong answers whose class was shown in the query's own context."""
        return np.asarray(~self.right & (self.answered_context == self.query_context))


def read_answers(records: pl.DataFrame) -> QueryAnswers:
    """All queries of the records; records without stored answers add nothing."""
    kept = records.filter(records["predicted"].list.len() > 0)
    if kept.is_empty():
        none = np.zeros(0, np.int64)
        return QueryAnswers((), (), none, none, none.astype(bool), none, none, none, none, none)
    concepts, concept, first_class = _number_labels(kept["concepts"])
    contexts, context, first_context = _number_labels(kept["contexts"])
    ways = kept["ways"].to_numpy().astype(np.int64)
    queries = kept["predicted"].list.len().to_numpy().astype(np.int64)
    task = np.repeat(np.arange(len(kept)), queries)
    position = np.arange(len(task)) - np.repeat(np.cumsum(queries) - queries, queries)
    # Queries are ordered class by class, equally many of each.
    truth = position // (queries // ways)[task]
    answered = _flatten(kept["predicted"])
    # The context of the supports of each class of each task, -1 where they are of several.
    shown = _flatten(kept["support_context"])
    owner = np.repeat(np.arange(len(kept)), ways)
    support = np.where(shown < 0, -1, context[first_context[owner] + np.maximum(shown, 0)])
    in_context = context[first_context[task] + _flatten(kept["query_context"])]
    first_support = (np.cumsum(ways) - ways)[task]
    misleading_classes = np.zeros(len(task), np.int64)
    for way in range(int(ways.max())):
        other = (way < ways[task]) & (way != truth)
        misleading_classes += other & (support[np.where(other, first_support + way, 0)] == in_context)
    return QueryAnswers(
        concepts=concepts,
        contexts=contexts,
        task=task,
        concept=concept[first_class[task] + truth],
        right=answered == truth,
        query_context=in_context,
        support_context=support[first_support + truth],
        answered_context=support[first_support + answered],
        misleading_classes=misleading_classes,
        ways=ways[task],
    )


def _number_labels(texts: pl.Series) -> tuple[tuple[str, ...], Codes, Codes]:
    """The sorted names in texts of one name per line; the number of each line's name; where each text's lines begin."""
    import polars as pl

    lines = texts.str.split("\n")
    flat, counts = lines.explode(), lines.list.len().to_numpy().astype(np.int64)
    names = sorted(flat.unique().to_list())
    numbers = flat.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    return tuple(names), numbers, np.cumsum(counts) - counts


def _flatten(lists: pl.Series) -> Codes:
    return np.asarray(lists.explode().to_numpy(), np.int64)
