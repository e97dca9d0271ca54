"""The report of TOSS: tier by tier, beside the published models, then single pairs that show what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from hardlook.harness.records import Record
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Score, Scorecard, find_score
from hardlook.harness.sections import Block, DistributionChart, Dot, DotChart, HeatMap, Section, Table, score_dot
from hardlook.harness.verdicts import describe_kind, judge
from hardlook.metrics.one_shot import SPLITS
from hardlook.toss.galleries import add_pair_iou, build_gallery, describe_pair
from hardlook.toss.options import COMPLEXITY, FIXED, GENERAL
from hardlook.toss.published import FoldResult, read_numbers
from hardlook.toss.salience_following import build_following_chart, describe_following
from hardlook.toss.scores import NOT_SALIENT, SALIENT, SPURIOUS
from hardlook.toss.support_use import describe_support_use

if TYPE_CHECKING:
    import polars as pl

SPLIT_NAMES = {
    "easy_sal": "easy, salient",
    "easy_nsal": "easy, not salient",
    "hard_sal": "hard, salient",
    "hard_nsal": "hard, not salient",
}
LEVEL_NAMES = {
    "L0": "L0 the query itself",
    "L1": "L1 the query's original, moved",
    "L2": "L2 same class, similar",
    "L3": "L3 same class, dissimilar",
    "L2+L3": "L2+L3 same class",
    "L4": "L4 another class",
    "L5": "L5 no mask",
    "L6": "L6 black image, no mask",
}
WEAKEST = 12
PAPER_BASELINE = "the paper's Baseline"


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    sections = [
        _build_complexity_section(scorecard),
        _build_cognizance_section(records, scorecard),
        _build_general_section(scorecard),
        _build_fixed_section(scorecard),
        _build_shots_section(scorecard),
        _build_leaderboard(scorecard),
        _build_gallery_section(records, scorecard),
    ]
    return [section for section in sections if section is not None]


def describe_unit(record: Record) -> str:
    """The class, the split or level, how well it was found, and what the mask follows.

    >>> counts = {"intersection": 3, "predicted": 5, "truth": 4, "predicted_void": 0}
    >>> pair = {"class": "cat", "tier": 2, "fold": 1, "split": "L1", "shots": 5, "mixed": False, **counts}
    >>> describe_unit(pair)
    "The mask for cat (L1 the query's original, moved; 5 supports) has an IoU of 0.500."
    """
    split = str(record["split"])
    setting = SPLIT_NAMES.get(split) or LEVEL_NAMES.get(split) or split
    if record["tier"] == GENERAL:
        setting = "tier 3, query and support of two classes" if record["mixed"] else "tier 3"
    elif record["tier"] == FIXED:
        setting = f"fixed pair of fold {record['fold']}"
    more = f"; {record['shots']} supports" if record["shots"] > 1 else ""
    return describe_pair(record, f"{setting}{more}", spurious=split in SPURIOUS)


def format_score(score: Score) -> str:
    """The value and its interval, such as `0.500 (0.450 to 0.550)`."""
    span = (
        f" ({format_fixed(score.interval.low, 3)} to {format_fixed(score.interval.high, 3)})" if score.interval else ""
    )
    return f"{format_fixed(score.value, 3)}{span}"


def judge_sign(score: Score, above: str, below: str) -> str:
    """The sentence for a score above 0 or below it, or that these data cannot tell and why."""
    verdict = judge(score)
    return {"above": above, "below": below}.get(verdict.side) or verdict.why


def describe_salience(scorecard: Scorecard) -> str:
    """Whether salient targets are found better, by how much, and whether salience is what the model follows."""
    gap, salient, other = (find_score(scorecard, name) for name in ("salience-gap", "salient", "non-salient"))
    followed = describe_following(scorecard)
    if gap is None or salient is None or other is None:
        return followed
    verdict = judge_sign(gap, "Salient targets are found better.", "Salient targets are found less well.")
    unmeasured = (
        "That is an association: salient targets may be easier for any model. A run with `--saliency MODEL` shows "
        "whether this one follows salience instead of the support."
    )
    return (
        f"{verdict} mIoU is {format_fixed(salient.value, 3)} on salient targets and {format_fixed(other.value, 3)} "
        "on the others, a gap of "
        f"{format_score(gap)}. The published models have gaps of 0.23 to 0.25. {followed or unmeasured}"
    )


def _build_complexity_section(scorecard: Scorecard) -> Section | None:
    """Tier 1: the four splits, salient against other targets, and what the masks go with."""
    splits = {split: score for split in SPLITS if (score := find_score(scorecard, "miou", split=split))}
    if not splits:
        return None
    published = read_numbers().tier_1["Baseline"]
    dots = [score_dot(score, SPLIT_NAMES[split], "this run") for split, score in splits.items()]
    dots += [Dot(SPLIT_NAMES[split], published[split].mean, group=PAPER_BASELINE) for split in SPLITS]
    blocks: list[Block] = [
        DotChart(
            "Tier 1: mIoU of the four splits",
            "Easy or hard: whether a supervised model finds the object. Salient or not: whether a saliency model finds "
            "it. LCA weighs the first row most, HCA the last.",
            dots,
            axis="mIoU",
        )
    ]
    halves = [score_dot(score, name) for name in ("salient", "non-salient") if (score := find_score(scorecard, name))]
    if len(halves) == 2:
        caption = (
            "All queries of tier 1, easy and hard. A gap alone does not say why: a supervised model may have it too."
        )
        blocks.append(DotChart("Salient and other targets", caption, halves, axis="mIoU"))
    if chart := build_following_chart(scorecard):
        blocks.append(chart)
    return Section(
        "Tier 1: which queries are found",
        describe_salience(scorecard),
        (
            *blocks,
            build_class_heat_map(scorecard, "split", SPLIT_NAMES, "IoU of each class in each split"),
            *build_fold_tables(scorecard, ("lca", "hca")),
            build_split_table(scorecard),
        ),
    )


def _build_cognizance_section(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """Tier 2: every level, those that show the class apart from those that do not."""
    levels = {level: score for level in LEVEL_NAMES if (score := find_score(scorecard, "miou", level=level))}
    if not levels:
        return None
    published = read_numbers().tier_2["Baseline"]
    groups = {True: "the support does not show it", False: "the support shows the class"}
    dots = [score_dot(score, LEVEL_NAMES[level], groups[level in SPURIOUS]) for level, score in levels.items()]
    dots += [Dot(LEVEL_NAMES[level], row.mean, group=PAPER_BASELINE) for level, row in published.items()]
    chart = DotChart(
        "Tier 2: mIoU with the query's own object, by what the support shows",
        "Where the support shows the class, right is good. Where it does not, a model that uses it finds nothing: "
        "left is good. If all rows are alike, the support does not matter.",
        dots,
        axis="mIoU with the query's own object",
    )
    heat_map = build_class_heat_map(scorecard, "level", {one: one for one in levels}, "IoU of each class at each level")
    tables = (*build_fold_tables(scorecard, ("scs",)), build_level_table(scorecard))
    text = describe_support_use(records, scorecard)
    return Section("Tier 2: is the support used?", text, (chart, heat_map, *tables))


def _build_general_section(scorecard: Scorecard) -> Section | None:
    """Tier 3: its classes, the weakest of them, and the published models."""
    ranked = sorted(_select_class_scores(scorecard, tier="3"), key=lambda score: score.value)
    total = find_score(scorecard, "gs")
    if not ranked or total is None:
        return None
    caption = "Classes that resemble none of the training classes; GS is their mean."
    spread = DistributionChart(
        "Tier 3: IoU of single classes", caption, (("classes", [score.value for score in ranked]),), axis="IoU"
    )
    weakest = DotChart(
        "The weakest classes of tier 3",
        "Lowest IoU first.",
        tuple(score_dot(score, score.slice["class"]) for score in ranked[:WEAKEST]),
        axis="IoU",
        references=(("GS", total.value),),
    )
    text = f"Over {len(ranked)} classes the mean is {format_fixed(total.value, 3)}. "
    text += describe_kind(scorecard, ranked, "IoU of a class", ("class",))
    for note in (*scorecard.left_out, *scorecard.noted):
        if note.what.startswith("pairs of two classes"):
            fate = "kept" if note.kept else "left out"
            text += f" {note.count} of its pairs join two classes by a slip of names; they are {fate}."
    return Section("Tier 3: classes never seen", text, (spread, weakest, build_general_table(scorecard)))


def _build_fixed_section(scorecard: Scorecard) -> Section | None:
    """Fixed pairs: classes and folds."""
    ranked = sorted(_select_class_scores(scorecard), key=lambda score: -score.value)
    total = find_score(scorecard, "miou")
    if not ranked or total is None:
        return None
    chart = DotChart(
        "Fixed pairs: IoU of each class",
        "Summed intersections over summed unions, with intervals over query images.",
        tuple(score_dot(score, score.slice["class"]) for score in ranked),
        axis="IoU",
        references=(("mIoU", total.value),),
    )
    return Section("Fixed pairs", "", (chart, *build_fold_tables(scorecard, ("miou",)), build_fixed_table(scorecard)))


def _build_shots_section(scorecard: Scorecard) -> Section | None:
    more = sorted({score.slice["shots"] for score in scorecard.scores if "shots" in score.slice}, key=int)
    if not more:
        return None
    rows = []
    for name in dict.fromkeys(score.name for score in scorecard.headline):
        scores = [find_score(scorecard, name), *(find_score(scorecard, name, shots=shots) for shots in more)]
        rows.append((name, *(score.value if score else None for score in scores)))
    caption = "The same pairs with further supports of the same class, drawn by seed, none of them the query."
    columns = ("score", "first", *(f"{shots} shots" for shots in more))
    return Section("More supports", "", (Table("More supports beside the first number", caption, columns, rows),))


def _build_leaderboard(scorecard: Scorecard) -> Section | None:
    """The four scores of every published model, and ours in the first row."""
    columns = ("lca", "hca", "scs", "gs")
    ours = [find_score(scorecard, name) for name in columns]
    if not any(ours):
        return None
    comparable: dict[str, list[str]] = {}
    for name, score in zip(columns, ours, strict=True):
        if score and score.comparable:
            comparable.setdefault(score.comparable, []).append(name.upper())
    text = " ".join(f"{', '.join(names)}: {sentence}." for sentence, names in comparable.items())
    rows: list[tuple[str | float | None, ...]] = [
        (scorecard.model or "this run", *(score.value if score else None for score in ours), "this run")
    ]
    for method, values in read_numbers().scores.items():
        rows.append((method, *(values[name] for name in columns), "Table 4"))
    table = Table(
        "LCA, HCA, SCS and GS of published models",
        "Values printed in the paper. HSNet's SCS and PFENet's cannot be recomputed from their own levels.",
        ("model", *(name.upper() for name in columns), "source"),
        tuple(rows),
    )
    return Section("Beside the published models", text, (table,))


def _build_gallery_section(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """Salient and other targets, found and missed; what is found without being shown; what is missed when shown."""
    import polars as pl

    pairs = add_pair_iou(records, scorecard)
    salient, other = ((pl.col("tier") == COMPLEXITY) & pl.col("split").is_in(own) for own in (SALIENT, NOT_SALIENT))
    wanted = (
        ("Salient and missed", "Lowest IoU among salient targets of tier 1.", salient, False),
        ("Not salient and missed", "Lowest IoU among the other targets of tier 1: what did it take instead?", other,
         False),
        ("Not salient and found", "Highest IoU among the targets that are not salient.", other, True),
        ("Found without being shown", "Supports of another class, without a mask, or black; yet the query's own "
         "object is found. Highest IoU first.", pl.col("split").is_in(SPURIOUS), True),
        ("Shown itself and missed", "The support is the query (L0). Lowest IoU first.", pl.col("split") == "L0", False),
    )  # fmt: skip
    galleries = [
        build_gallery(pairs.filter(rows), title, caption, "split", found=found)
        for title, caption, rows, found in wanted
    ]
    blocks = tuple(gallery for gallery in galleries if gallery.examples)
    return Section("Salience and supports, pair by pair", "One pair per query image.", blocks) if blocks else None


def build_class_heat_map(
    scorecard: Scorecard, by: str, columns: Mapping[str, str], title: str, caption: str = "Empty cells have no pairs."
) -> HeatMap:
    """IoU of each class in each split, level or other slice `by`, whose values `columns` maps to displayed names."""
    cells = {
        (score.slice["class"], score.slice[by]): score.value
        for score in scorecard.scores
        if score.name == "iou" and set(score.slice) == {"class", by}
    }
    classes = sorted({name for name, _ in cells})
    values = [[cells.get((name, column), float("nan")) for column in columns] for name in classes]
    return HeatMap(title, caption, classes, list(columns.values()), values, row_axis="class", column_axis=by)


def build_fold_tables(scorecard: Scorecard, names: Sequence[str]) -> tuple[Table, ...]:
    """A table of these scores in every fold, with their intervals; none for a single fold, which is the whole."""
    folds = sorted({score.slice["fold"] for score in scorecard.scores if set(score.slice) == {"fold"}}, key=int)
    if len(folds) < 2:
        return ()
    rows = []
    for fold in folds:
        dots = [score_dot(score, "") if (score := find_score(scorecard, name, fold=fold)) else None for name in names]
        cells = [(dot.value, dot.low, dot.high) if dot else (None, None, None) for dot in dots]
        rows.append((f"fold {fold}", *chain(*cells)))
    columns = [column for name in names for column in (name.upper(), "low", "high")]
    title = f"{' and '.join(name.upper() for name in names)} by fold"
    return (Table(title, "Each fold tests its own classes.", ("fold", *columns), tuple(rows)),)


def _select_class_scores(scorecard: Scorecard, **where: str) -> list[Score]:
    """The IoU of every class in that slice."""
    return [
        score
        for score in scorecard.scores
        if score.name == "iou" and "class" in score.slice and {**score.slice, "class": ""} == {**where, "class": ""}
    ]


_PublishedRow = tuple[str, str, Mapping[str, str], Mapping[str, FoldResult]]
"""A label, the name and the slice of our score, and what is printed for it by method."""


def build_split_table(scorecard: Scorecard) -> Table:
    """Tier 1: every split, LCA and HCA, of each fold."""
    printed = read_numbers().tier_1
    rows = [(SPLIT_NAMES[split], "miou", {"split": split}, _select_row(printed, split)) for split in SPLITS]
    rows += [(name.upper(), name, {}, _select_row(printed, name)) for name in ("lca", "hca")]
    return _build_published_table(scorecard, "Tier 1", rows)


def build_level_table(scorecard: Scorecard) -> Table:
    """Tier 2: every level of each fold; the paper prints L2 and L3 as one."""
    printed = read_numbers().tier_2
    rows = [(level, "miou", {"level": level}, _select_row(printed, level)) for level in LEVEL_NAMES]
    return _build_published_table(scorecard, "Tier 2", rows)


def build_general_table(scorecard: Scorecard) -> Table:
    """Tier 3: the models of the folds, or the one model that ran, and the published models of each fold."""
    return _build_published_table(scorecard, "Tier 3", [("GS", "gs", {}, read_numbers().tier_3)])


def build_fixed_table(scorecard: Scorecard) -> Table:
    """Fixed pairs: mIoU of each fold, the published ones of PASCAL-5i without any remedy."""
    printed = _select_row(read_numbers().remedies, "none")
    return _build_published_table(scorecard, "Fixed pairs", [("mIoU", "miou", {}, printed)])


def _select_row(table: Mapping[str, Mapping[str, FoldResult]], name: str) -> dict[str, FoldResult]:
    return {method: rows[name] for method, rows in table.items() if name in rows}


def _build_published_table(scorecard: Scorecard, what: str, rows: Sequence[_PublishedRow]) -> Table:
    """Our value and the published ones, of all folds and of each; rows without any value are left out."""
    methods = list(dict.fromkeys(method for *_, printed in rows for method in printed))
    cells: list[tuple[str | float | None, ...]] = []
    comparable = []
    for label, name, where, printed in rows:
        total = find_score(scorecard, name, **where)
        comparable.append(total.comparable if total else "")
        means = [printed[method].mean if printed else None for method in methods]
        cells.append((label, "all", total.value if total else None, *means))
        for fold in range(4):
            score = find_score(scorecard, name, **where, fold=str(fold))
            folds = [printed[method].folds[fold] if printed else None for method in methods]
            cells.append((label, f"fold {fold}", score.value if score else None, *folds))
    caption = "Printed values and printed means; the published folds are those of PASCAL-5i."
    if sentence := next(filter(None, comparable), ""):
        caption += f" {sentence[:1].upper()}{sentence[1:]}."
    return Table(
        f"{what} beside the published models",
        caption,
        ("what", "fold", scorecard.model or "this run", *methods),
        tuple(row for row in cells if any(cell is not None for cell in row[2:])),
    )
