"""What the report of TOSS shows: tier by tier, beside the published models, then pairs to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.toss.galleries import galleries
from hardlook.benchmarks.toss.leaderboard import leaderboard
from hardlook.benchmarks.toss.verdicts import found, salience_words, support_words
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Block, DistributionChart, Dot, DotChart, HeatMap, Section, Table
from hardlook.metrics.one_shot_scores import SPLITS

if TYPE_CHECKING:
    import polars as pl

SPLIT_WORDS = {
    "easy_sal": "easy, salient",
    "easy_nsal": "easy, not salient",
    "hard_sal": "hard, salient",
    "hard_nsal": "hard, not salient",
}
LEVEL_WORDS = {
    "L0": "L0 the query itself",
    "L1": "L1 the query's original, moved",
    "L2": "L2 same class, similar",
    "L3": "L3 same class, dissimilar",
    "L2+L3": "L2+L3 same class",
    "L4": "L4 another class",
    "L5": "L5 no mask",
    "L6": "L6 black image, no mask",
}
SHOWN, SPURIOUS = "the support shows the class", "the support does not show it"
WEAKEST = 12


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    sections = [_complexity(scorecard), _cognizance(scorecard), _general(scorecard), _fixed(scorecard)]
    sections += [_shots(scorecard), leaderboard(scorecard), galleries(records, scorecard)]
    return [section for section in sections if section is not None]


def _complexity(scorecard: Scorecard) -> Section | None:
    splits = {split: score for split in SPLITS if (score := found(scorecard, "miou", split=split))}
    if not splits:
        return None
    blocks: list[Block] = [
        DotChart(
            "Tier 1: mIoU of the four splits",
            "Easy or hard: whether a supervised model finds the object. Salient or not: whether it catches the eye. "
            "LCA weighs the first row most, HCA the last.",
            tuple(_dot(score, SPLIT_WORDS[split]) for split, score in splits.items()),
            axis="mIoU",
        )
    ]
    ends = [(name, found(scorecard, name)) for name in ("salient", "non-salient")]
    if all(score for _, score in ends):
        blocks.append(
            DotChart(
                "Salient and other targets",
                "All queries of tier 1, easy and hard together. A model that follows the support has no gap that a "
                "supervised model would not have too; one that follows the eye loses the second row.",
                tuple(_dot(score, name) for name, score in ends if score),
                axis="mIoU",
            )
        )
    blocks.append(_class_heat(scorecard, "split", SPLITS, SPLIT_WORDS, "IoU of each class in each split"))
    blocks.append(_fold_table(scorecard, ("lca", "hca")))
    return Section("Tier 1: which queries are found", salience_words(scorecard), tuple(blocks))


def _cognizance(scorecard: Scorecard) -> Section | None:
    levels = {level: score for level in LEVEL_WORDS if (score := found(scorecard, "miou", level=level))}
    if not levels:
        return None
    rows = tuple(
        _dot(score, LEVEL_WORDS[level], SPURIOUS if level in ("L4", "L5", "L6") else SHOWN)
        for level, score in levels.items()
    )
    chart = DotChart(
        "Tier 2: mIoU with the query's own object, by what the support shows",
        "Where the support shows the class, right is good. Where it does not, a model that looks at it finds nothing: "
        "left is good. A flat picture means that the support does not matter.",
        rows,
        axis="mIoU with the query's own object",
    )
    heat = _class_heat(scorecard, "level", list(levels), dict.fromkeys(levels), "IoU of each class at each level")
    return Section(
        "Tier 2: does it look at the support?",
        support_words(scorecard),
        (chart, heat, _fold_table(scorecard, ("scs",))),
    )


def _general(scorecard: Scorecard) -> Section | None:
    classes = _class_scores(scorecard, tier="3")
    total = found(scorecard, "gs")
    if not classes or total is None:
        return None
    ranked = sorted(classes, key=lambda score: score.value)
    spread = DistributionChart(
        "Tier 3: IoU of single classes",
        "Classes that resemble none of the training classes; GS is their mean.",
        (("classes", [score.value for score in ranked]),),
        axis="IoU",
    )
    weakest = DotChart(
        "The weakest classes of tier 3",
        "Lowest IoU first.",
        tuple(_dot(score, score.slice["class"]) for score in ranked[:WEAKEST]),
        axis="IoU",
        references=(("GS", total.value),),
    )
    text = f"Over {len(ranked)} classes the mean is {total.value:.3f}, from {ranked[0].value:.3f} "
    text += f"({ranked[0].slice['class']}) to {ranked[-1].value:.3f} ({ranked[-1].slice['class']})."
    return Section("Tier 3: classes never seen", text, (spread, weakest))


def _fixed(scorecard: Scorecard) -> Section | None:
    classes = _class_scores(scorecard)
    total = found(scorecard, "miou")
    if not classes or total is None:
        return None
    ranked = sorted(classes, key=lambda score: -score.value)
    chart = DotChart(
        "Fixed pairs: IoU of each class",
        "Summed intersections over summed unions, with intervals over query images.",
        tuple(_dot(score, score.slice["class"]) for score in ranked),
        axis="IoU",
        references=(("mIoU", total.value),),
    )
    return Section("Fixed pairs", "", (chart, _fold_table(scorecard, ("miou",))))


def _shots(scorecard: Scorecard) -> Section | None:
    more = sorted({score.slice["shots"] for score in scorecard.scores if "shots" in score.slice}, key=int)
    if not more:
        return None
    names = [score.name for score in scorecard.headline]
    rows = []
    for name in dict.fromkeys(names):
        values = [found(scorecard, name), *(found(scorecard, name, shots=shots) for shots in more)]
        rows.append((name, *(score.value if score else None for score in values)))
    table = Table(
        "More supports beside the first number",
        "The same pairs with further supports of the same class, drawn by seed, none of them the query.",
        ("score", "first", *(f"{shots} shots" for shots in more)),
        tuple(rows),
    )
    return Section("More supports", "", (table,))


def _class_heat(
    scorecard: Scorecard, by: str, columns: Sequence[str], words: Mapping[str, str | None], title: str
) -> HeatMap:
    cells = {
        (score.slice["class"], score.slice[by]): score.value
        for score in scorecard.scores
        if score.name == "iou" and set(score.slice) == {"class", by}
    }
    classes = sorted({name for name, _ in cells})
    return HeatMap(
        title,
        "Empty cells have no pairs.",
        classes,
        [words[column] or column for column in columns],
        [[cells.get((name, column), float("nan")) for column in columns] for name in classes],
        row_axis="class",
        column_axis=by,
    )


def _fold_table(scorecard: Scorecard, names: Sequence[str]) -> Table:
    folds = sorted({score.slice["fold"] for score in scorecard.scores if set(score.slice) == {"fold"}}, key=int)
    rows = []
    for fold in folds:
        values = [found(scorecard, name, fold=fold) for name in names]
        cells = [cell for score in values for cell in _cells(score)]
        rows.append((f"fold {fold}", *cells))
    columns = [column for name in names for column in (name.upper(), "low", "high")]
    return Table("By fold", "Each fold tests its own classes.", ("fold", *columns), tuple(rows))


def _cells(score: Score | None) -> tuple[float | None, float | None, float | None]:
    if score is None:
        return None, None, None
    return score.value, *((score.interval.low, score.interval.high) if score.interval else (None, None))


def _class_scores(scorecard: Scorecard, **where: str) -> list[Score]:
    wanted = {**where, "class": ""}
    return [
        score
        for score in scorecard.scores
        if score.name == "iou"
        and set(score.slice) == set(wanted)
        and all(score.slice[name] == value for name, value in where.items())
    ]


def _dot(score: Score, label: str, group: str = "") -> Dot:
    low, high = (score.interval.low, score.interval.high) if score.interval else (None, None)
    return Dot(label, score.value, low, high, group)
