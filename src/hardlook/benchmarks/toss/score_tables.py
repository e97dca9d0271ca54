"""Tables and heat maps of a scorecard's slices: classes by split or level, folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hardlook.contract.scorecard import Score, Scorecard, found
from hardlook.contract.sections import HeatMap, Table


def class_heat(
    scorecard: Scorecard, by: str, columns: Sequence[str], words: Mapping[str, str | None], title: str
) -> HeatMap:
    """IoU of each class in each split or level (`by`); `words` name the columns, None for the value itself."""
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


def fold_tables(scorecard: Scorecard, names: Sequence[str]) -> tuple[Table, ...]:
    """A table of these scores in every fold, with their intervals; none where one fold ran, for it is the whole."""
    folds = sorted({score.slice["fold"] for score in scorecard.scores if set(score.slice) == {"fold"}}, key=int)
    if len(folds) < 2:
        return ()
    rows = []
    for fold in folds:
        values = [found(scorecard, name, fold=fold) for name in names]
        cells = [cell for score in values for cell in _cells(score)]
        rows.append((f"fold {fold}", *cells))
    columns = [column for name in names for column in (name.upper(), "low", "high")]
    title = f"{' and '.join(name.upper() for name in names)} by fold"
    return (Table(title, "Each fold tests its own classes.", ("fold", *columns), tuple(rows)),)


def class_scores(scorecard: Scorecard, **where: str) -> list[Score]:
    """The IoU of every class in that slice."""
    wanted = {**where, "class": ""}
    return [
        score
        for score in scorecard.scores
        if score.name == "iou"
        and set(score.slice) == set(wanted)
        and all(score.slice[name] == value for name, value in where.items())
    ]


def _cells(score: Score | None) -> tuple[float | None, float | None, float | None]:
    if score is None:
        return None, None, None
    return score.value, *((score.interval.low, score.interval.high) if score.interval else (None, None))
