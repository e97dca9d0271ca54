"""The rules by which the pair lists of TOSS are made, for any dataset.

They follow "What Ails One-Shot Image Segmentation: A Data Perspective" (NeurIPS 2022 D&B) and its published lists.
`build_tiers` applies them to all folds of a dataset:

- tier 1, query complexity: pairs for every combination of the query's and the support's partition (`assign_partition`).
  The rule is recovered from the published files and gives the size of all their 320 cells: a cell is one class, one
  partition of queries and one of supports. Below 2,000 pairs a cell is listed whole, query by query, self pairs among
  them; from 2,000 on, 1,000 are drawn without self pairs.
- tier 2, support cognizance: from the query itself as support (L0) down to no support at all (L6). Numbers per class
  are those of the published files; a class with fewer images uses all it has.
- fixed lists: random pairs of one class, up to 3,000 per class, as the published splits have them.

Tier 3, generalisation (`build_generalisation`): classes that resemble no training class, their most and their least
salient images. Most published classes have 45 pairs, half of the 90 that ten images make; so do ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hardlook.data.toss_pairs import SPLITS, Pair
from hardlook.errors import OptionError
from hardlook.randomness import generator

# The order of the supports' partitions inside a published file.
PARTITIONS = ("easy_nsal", "easy_sal", "hard_nsal", "hard_sal")
EASY_ABOVE = 0.75
SALIENT_ABOVE = 0.5
WHOLE_BELOW, DRAWN = 2000, 1000  # pairs of a cell of tier 1
BASES, TRANSFORMS, SAME_CLASS_EACH, OTHER_CLASS = 48, 4, 50, 40  # per class of tier 2
WANTED = {
    "L0": BASES, "L1": BASES * TRANSFORMS, "L2": SAME_CLASS_EACH, "L3": SAME_CLASS_EACH, "L4": OTHER_CLASS,
    "L5": BASES, "L6": BASES,
}  # fmt: skip
SIMILARITY_POOL = 3500  # per class: the published threshold is a mean over 70,000 pairs of twenty classes

Members = Mapping[str, Mapping[str, Sequence[str]]]
"""Tokens by class and partition."""


def assign_partition(supervised_iou: float, salience: float) -> str:
    """The partition of a mask: easy if a supervised model finds it, sal if a saliency model does.

    Both numbers are IoU with the mask, in [0, 1], and must lie above their threshold.

    >>> assign_partition(0.9, 0.1), assign_partition(0.75, 0.6)
    ('easy_nsal', 'hard_sal')
    """
    ease = "easy" if supervised_iou > EASY_ABOVE else "hard"
    return f"{ease}_{'sal' if salience > SALIENT_ABOVE else 'nsal'}"


def group_members(partitions: Mapping[str, str], classes: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """Tokens by class and partition, in the given order; `classes` names the class of each token.

    >>> group_members({"1_a": "easy_sal", "1_b": "easy_sal"}, {"1_a": "cat", "1_b": "cat"})["cat"]["easy_sal"]
    ['1_a', '1_b']
    """
    members: dict[str, dict[str, list[str]]] = {}
    for token, partition in partitions.items():
        members.setdefault(classes[token], {name: [] for name in PARTITIONS})[partition].append(token)
    return members


def split_into_folds(classes: Iterable[str], folds: int) -> tuple[tuple[str, ...], ...]:
    """Classes in order, cut into folds of equal size; where they do not divide, the first folds have one more.

    Twenty classes in four folds are PASCAL-5i.

    >>> split_into_folds("abcde", 2)
    (('a', 'b', 'c'), ('d', 'e'))
    """
    names = tuple(classes)
    if not 1 <= folds <= len(names):
        raise OptionError(f"--folds {folds}: there are {len(names)} classes", remedy="give every fold a class")
    size, more = divmod(len(names), folds)
    starts = [fold * size + min(fold, more) for fold in range(folds + 1)]
    return tuple(names[start:end] for start, end in pairwise(starts))


def draw_pairs(
    queries: Sequence[str], supports: Sequence[str], count: int, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """`count` distinct (query, support) pairs in random order, or all there are if they are fewer.

    The two lists are the same, and then no token is paired with itself, or have nothing in common.

    >>> sorted(draw_pairs(["a", "b"], ["a", "b"], 9, np.random.default_rng(0)))
    [('a', 'b'), ('b', 'a')]
    """
    same = list(queries) == list(supports)
    if not same and set(queries) & set(supports):
        raise ValueError("expected equal or disjoint lists of queries and supports, they overlap in part")
    width = len(supports) - same  # a query's row in the table of all pairs
    available = len(queries) * max(width, 0)
    places = rng.choice(available, size=min(count, available), replace=False) if available else np.zeros(0, np.int64)
    drawn = []
    for place in places.tolist():
        row, column = divmod(place, width)
        drawn.append((queries[row], supports[column + (same and column >= row)]))
    return drawn


def draw_random_pairs(
    tokens: Mapping[str, Sequence[str]], classes: Sequence[str], *, seed: int = 0, most: int = 3000
) -> list[tuple[str, str]]:
    """The fixed list of a fold's classes, class by class: no self pairs, no duplicates; `tokens` by class.

    >>> sorted(draw_random_pairs({"cat": ["1_a", "1_b"]}, ["cat"]))
    [('1_a', '1_b'), ('1_b', '1_a')]
    """
    drawn: list[tuple[str, str]] = []
    for name in classes:
        own = tokens.get(name, ())
        drawn += draw_pairs(own, own, most, generator(seed, "fixed", name))
    return drawn


@dataclass(frozen=True)
class Cell:
    """The pairs of one class between a partition of queries and one of supports, with the sizes they come from."""

    class_name: str
    query_partition: str
    support_partition: str
    queries: int
    supports: int
    pairs: tuple[tuple[str, str], ...]


def draw_cell_pairs(
    queries: Sequence[str], supports: Sequence[str], *, seed: int, key: Sequence[str]
) -> list[tuple[str, str]]:
    """The pairs of a cell; `key` names it, so that its draw depends on nothing else.

    >>> draw_cell_pairs(["1_a", "1_b"], ["1_a", "1_b"], seed=0, key=("cat", "easy_sal", "easy_sal"))
    [('1_a', '1_a'), ('1_a', '1_b'), ('1_b', '1_a'), ('1_b', '1_b')]
    """
    if len(queries) * len(supports) < WHOLE_BELOW:
        return [(query, support) for query in queries for support in supports]
    return draw_pairs(queries, supports, DRAWN, generator(seed, "tier 1", *key))


def build_query_complexity(
    members: Members, classes: Sequence[str], query_partition: str, *, seed: int = 0
) -> tuple[Cell, ...]:
    """The cells of one file, `splitK_q_<query_partition>`, in its order: support partition outer, class inner.

    `members` are tokens by class and partition, `classes` those of the fold. A class without members has empty cells.

    >>> members = {"cat": {"easy_sal": ["1_a"], "hard_sal": ["1_b", "1_c"]}}
    >>> [len(cell.pairs) for cell in build_query_complexity(members, ["cat"], "hard_sal")]
    [0, 2, 0, 4]
    """
    cells = []
    for support_partition in PARTITIONS:
        for name in classes:
            queries = members.get(name, {}).get(query_partition, ())
            supports = members.get(name, {}).get(support_partition, ())
            key = (name, query_partition, support_partition)
            pairs = draw_cell_pairs(queries, supports, seed=seed, key=key)
            cells.append(Cell(*key, len(queries), len(supports), tuple(pairs)))
    return tuple(cells)


def draw_similarity_pools(tokens: Mapping[str, Sequence[str]], *, seed: int = 0) -> dict[str, list[tuple[str, str]]]:
    """Same-class pairs, up to 3,500 per class, over which the mean similarity is taken.

    >>> len(draw_similarity_pools({"cat": ["1_a", "1_b", "1_c"]})["cat"])
    6
    """
    return {
        name: draw_pairs(own, own, SIMILARITY_POOL, generator(seed, "tier 2 pool", name))
        for name, own in tokens.items()
    }


def build_support_cognizance(
    tokens: Mapping[str, Sequence[str]],
    classes: Sequence[str],
    similar: Mapping[tuple[str, str], bool],
    *,
    fold: int = 0,
    seed: int = 0,
) -> list[Pair]:
    """The pairs of one fold: class by class, level by level.

    `tokens` by class; `similar` separates same-class pairs: above the mean similarity or not
    (`draw_similarity_pools`).

    >>> rows = build_support_cognizance({"cat": ["1_a", "1_b"], "dog": ["2_c"]}, ["cat", "dog"], {("1_a", "1_b"): True})
    >>> [(row.support, row.split) for row in rows if row.query == "1_a" and row.split != "L1"]
    [('1_a', 'L0'), ('1_b', 'L2'), ('2_c', 'L4'), ('1_b', 'L5'), ('1_b', 'L6')]
    """
    rows: list[Pair] = []
    for name in classes:
        own = list(tokens.get(name, ()))
        known = set(own)
        rows += [Pair(token, token, 2, fold, "L0") for token in _draw_tokens(own, BASES, seed, "L0", name)]
        for base in _draw_tokens(own, BASES, seed, "L1", name):
            numbers = generator(seed, "tier 2 transforms", base).choice(99_999, TRANSFORMS, replace=False)
            rows += [Pair(base, base, 2, fold, "L1", transform=number + 1) for number in numbers.tolist()]
        for level, wanted in (("L2", True), ("L3", False)):
            fitting = [pair for pair, alike in similar.items() if alike is wanted and pair[0] in known]
            rows += [Pair(*pair, 2, fold, level) for pair in fitting[:SAME_CLASS_EACH]]
        others = [other for other in classes if other != name]
        rows += [Pair(*pair, 2, fold, "L4") for pair in _draw_other_class(tokens, name, others, seed)]
        for level in ("L5", "L6"):
            queries = _draw_tokens(own, BASES, seed, level, name)
            rng = generator(seed, "tier 2 support", level, name)
            for query in queries:
                # Another image of the class, unless it has only one.
                rest = [token for token in own if token != query] or [query]
                rows.append(Pair(query, rest[int(rng.integers(len(rest)))], 2, fold, level))
    return rows


def _draw_tokens(tokens: Sequence[str], count: int, seed: int, *key: str) -> list[str]:
    rng = generator(seed, "tier 2", *key)
    return [tokens[place] for place in rng.permutation(len(tokens))[:count].tolist()]


def _draw_other_class(
    tokens: Mapping[str, Sequence[str]], name: str, others: Sequence[str], seed: int
) -> list[tuple[str, str]]:
    """The same queries with a support of each other class; a support is used again only if its class has no other."""
    filled = [other for other in others if tokens.get(other)]
    if not filled or not tokens.get(name):
        return []
    share, more = divmod(OTHER_CLASS, len(filled))
    queries = _draw_tokens(tokens[name], -(-OTHER_CLASS // len(filled)), seed, "L4", name)
    pairs = []
    for place, other in enumerate(filled):
        supports = _draw_tokens(tokens[other], len(queries), seed, "L4", name, other)
        paired = queries[: share + (place < more)]
        pairs += [(query, supports[turn % len(supports)]) for turn, query in enumerate(paired)]
    return pairs


def normalise_class_name(name: str) -> str:
    """A class name as FSS-1000 writes folders: lower case, underscores.

    >>> normalise_class_name("Egyptian-cat")
    'egyptian_cat'
    """
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())


def drop_resembling_classes(classes: Sequence[str], resembling: Collection[str]) -> tuple[str, ...]:
    """The classes that are not named among those to drop, in their order.

    >>> drop_resembling_classes(["abacus", "egyptian_cat"], ["egyptian-cat"])
    ('abacus',)
    """
    dropped = {normalise_class_name(name) for name in resembling}
    return tuple(name for name in classes if normalise_class_name(name) not in dropped)


def select_salience_extremes(salience: Mapping[str, float], each: int = 5) -> tuple[list[str], list[str]]:
    """The most and the least salient tokens of a class, equally many: `each`, or half of all tokens if there are fewer.

    Equal salience is sorted by the token's name.

    >>> select_salience_extremes({"1_cat_1": 0.9, "1_cat_2": 0.1, "1_cat_3": 0.5}, each=2)
    (['1_cat_1'], ['1_cat_2'])
    """
    ranked = sorted(salience, key=lambda token: (-salience[token], token))
    taken = min(each, len(ranked) // 2)
    return ranked[:taken], ranked[len(ranked) - taken :][::-1]


def build_generalisation(
    salience: Mapping[str, Mapping[str, float]],
    resembling: Collection[str],
    *,
    seed: int = 0,
    pairs_per_class: int = 45,
) -> dict[str, list[tuple[str, str]]]:
    """Pairs by class among the most and the least salient images; half of the queries from either end.

    `salience` holds the IoU of mask and saliency mask of each token, by class. A class of one image has no pairs.

    >>> drawn = build_generalisation({"abacus": {f"1_abacus_{n}": n / 10 for n in range(10)}, "bus": {}}, ["bus"])
    >>> {name: len(pairs) for name, pairs in drawn.items()}
    {'abacus': 45}
    """
    built: dict[str, list[tuple[str, str]]] = {}
    for name in drop_resembling_classes(list(salience), resembling):
        ends = select_salience_extremes(salience[name])
        both = [*ends[0], *ends[1]]
        drawn = draw_pairs(both, both, len(both) ** 2, generator(seed, "tier 3", name))
        quotas = (pairs_per_class - pairs_per_class // 2, pairs_per_class // 2)
        chosen = {
            pair for end, quota in zip(ends, quotas, strict=True) for pair in [p for p in drawn if p[0] in end][:quota]
        }
        built[name] = [pair for pair in drawn if pair in chosen]
    return built


@dataclass(frozen=True)
class Unfilled:
    """A part that has fewer pairs than the published rule asks for, and why."""

    part: str
    wanted: int
    got: int
    why: str


@dataclass(frozen=True)
class BuiltTiers:
    """Pair lists by (tier, fold, split); tier 0 are the fixed lists. `cells` by fold, `folds` the classes of each."""

    folds: tuple[tuple[str, ...], ...]
    lists: Mapping[tuple[int, int, str], tuple[Pair, ...]]
    cells: Mapping[int, tuple[Cell, ...]]
    levels: Mapping[str, Mapping[str, int]]
    unfilled: tuple[Unfilled, ...]


def build_tiers(
    classes: tuple[str, ...],
    class_of: Mapping[str, str],
    partitions: Mapping[str, str],
    similar: Mapping[tuple[str, str], bool],
    *,
    folds: int = 4,
    seed: int = 0,
) -> BuiltTiers:
    """Tiers 1 and 2 and the fixed lists of all folds.

    `class_of` and `partitions` are by token; `similar` separates same-class pairs (`build_support_cognizance`).

    >>> partitions = {"1_a": "easy_sal", "1_b": "hard_sal"}
    >>> built = build_tiers(("cat",), {"1_a": "cat", "1_b": "cat"}, partitions, {}, folds=1)
    >>> [(pair.query, pair.support) for pair in built.lists[1, 0, "easy_sal"]]
    [('1_a', '1_a'), ('1_a', '1_b')]
    """
    # Tiers 2 and 0 also use the tokens without a partition.
    tokens: dict[str, list[str]] = {name: [] for name in classes}
    for token, name in class_of.items():
        tokens[name].append(token)
    members = group_members(partitions, class_of)
    by_fold = split_into_folds(classes, folds)
    lists: dict[tuple[int, int, str], tuple[Pair, ...]] = {}
    cells: dict[int, tuple[Cell, ...]] = {}
    levels: dict[str, dict[str, int]] = {}
    for fold, own in enumerate(by_fold):
        by_split = {split: build_query_complexity(members, own, split, seed=seed) for split in SPLITS}
        cells[fold] = tuple(cell for some in by_split.values() for cell in some)
        for split, some in by_split.items():
            lists[1, fold, split] = tuple(Pair(*pair, 1, fold, split) for cell in some for pair in cell.pairs)
        cognizance = build_support_cognizance(tokens, own, similar, fold=fold, seed=seed)
        lists[2, fold, ""] = tuple(cognizance)
        for name in own:
            counts = Counter(pair.split for pair in cognizance if class_of[pair.query] == name)
            levels[name] = {level: counts[level] for level in WANTED}
        lists[0, fold, ""] = tuple(Pair(*pair, 0, fold) for pair in draw_random_pairs(tokens, own, seed=seed))
    return BuiltTiers(by_fold, lists, cells, levels, tuple(_list_unfilled(tokens, cells, levels)))


def _list_unfilled(
    tokens: Mapping[str, Sequence[str]],
    cells: Mapping[int, Sequence[Cell]],
    levels: Mapping[str, Mapping[str, int]],
) -> list[Unfilled]:
    unfilled = []
    for fold, own in cells.items():
        for cell in own:
            if not cell.pairs:
                part = f"tier 1, fold {fold}, {cell.class_name}: {cell.query_partition} x {cell.support_partition}"
                lacks = cell.query_partition if not cell.queries else cell.support_partition
                unfilled.append(Unfilled(part, 1, 0, f"{cell.class_name} has no mask that is {lacks}"))
    for name, counts in levels.items():
        for level, wanted in WANTED.items():
            if counts[level] < wanted:
                why = f"{name} has {len(tokens[name])} images" if tokens[name] else f"no image holds {name}"
                unfilled.append(Unfilled(f"tier 2, {name}: {level}", wanted, counts[level], why))
    return unfilled
