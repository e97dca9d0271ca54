"""What came in of a ratings study: ratings.csv, items.csv, report.json and page.html.

Every rating counts by itself: unlike clicks, no batch makes one invalid, and a batch that was given up keeps its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook import __version__
from hardlook.collect.results.answer_frames import typed_participants
from hardlook.collect.results.exclusions import ExclusionRules, excluded, rules_of
from hardlook.collect.results.quality import participant_quality
from hardlook.collect.results.rating_scores import SCALE, RatingScores, fit_scores, likeness_scores
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import RatingTask
from hardlook.errors import DataError
from hardlook.report.page import render_study
from hardlook.runs.folder import write_whole

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

SCHEMA = "hardlook.ratings-report/1"
RATINGS, ITEMS, REPORT, PAGE = "ratings.csv", "items.csv", "report.json", "page.html"
FORMS = ("pair", "picture")
JOINER = " | "
_COLUMNS = {
    **dict.fromkeys(("participant", "item", "subject", "form", "labels", "measure"), pl.String),
    **dict.fromkeys(("value", "reaction_ms"), pl.Float64),
    **dict.fromkeys(("number", "rating"), pl.Int64),
}


@dataclass(frozen=True)
class CollectedRatings:
    """All that a report is made of.

    `ratings` has a row a rating that counts; `items` a row a task with how many it has and their mean; `scores` those
    of each form that has tasks; `values` what each measure says, by subject; `left_out` rows like those of a study's
    `made.json`.
    """

    study: Study
    ratings: pl.DataFrame
    items: pl.DataFrame
    scores: Mapping[str, RatingScores]
    values: Mapping[str, Mapping[str, float]]
    left_out: tuple[Mapping[str, Any], ...]
    rules: Mapping[str, Any]


def export_ratings(study: Study, store: Store, out: Path, rules: ExclusionRules | None = None) -> dict[str, Any]:
    """Write all files of a ratings study into the folder `out`; return the document of report.json.

    Without `rules` those of the dashboard run. Participants go by a running number.
    """
    from hardlook.collect.results.ratings_page import in_words, rating_sections

    collected = collect_ratings(study, store, rules)
    document: dict[str, Any] = _finite({**_document(collected), "in_words": in_words(collected)})
    page = render_study(
        rating_sections(collected),
        title=f"What people say: {study.settings.title}",
        kind="Ratings",
        summary=" ".join(document["in_words"]),
        provenance={name: document[name] for name in ("schema", "hardlook", "study", "rules", "files")},
    )
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / RATINGS, collected.ratings.drop("participant").rename({"number": "participant"}).write_csv())
    write_whole(out / ITEMS, collected.items.write_csv())
    write_whole(out / REPORT, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_whole(out / PAGE, page)
    return document


def collect_ratings(study: Study, store: Store, rules: ExclusionRules | None = None) -> CollectedRatings:
    """Read the ratings, leave out whom the rules exclude, and score what is left."""
    if study.settings.kind != "ratings":
        raise DataError(f"this is a study of {study.settings.kind}", file=study.path, remedy="give one of ratings")
    answers, people = store.answers(), store.participants()
    chosen = rules if rules is not None else rules_of(store.rules())
    without = excluded(participant_quality(study, answers, store.batches(), people), chosen) if len(people) else {}
    every = _ratings(study, answers, people)
    strange = every["rating"].is_null() | ~every["rating"].is_in(list(SCALE))
    barred = every["participant"].is_in(list(without)) & ~strange
    counted = every.filter(~strange & ~barred)
    notes = [
        ("ratings", int(barred.sum()), "a rule of exclusion leaves their participants out", sorted(without.values())),
        ("answers", int(strange.sum()), "they are no rating from 1 to 10", []),
    ]
    values = _values(study)
    return CollectedRatings(
        study,
        counted,
        _items(study, counted),
        _scores(study, counted, values),
        values,
        tuple({"what": what, "count": n, "why": why, "examples": some[:5]} for what, n, why, some in notes if n),
        chosen.set_rules(),
    )


def _tasks(study: Study) -> list[RatingTask]:
    return [task for task in study.tasks if isinstance(task, RatingTask) and not task.training]


def _ratings(study: Study, answers: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    numbers = dict(typed_participants(people).select("id", "number").iter_rows())
    tasks = {task.id: task for task in _tasks(study)}
    rows = []
    wanted = ("participant", "task", "value", "reaction_ms")
    for person, task_id, rating, reaction in answers.select(wanted).iter_rows():
        if task_id not in tasks:
            raise DataError("an answer to a task of another study", unit=task_id, remedy="give the study's database")
        task = tasks[task_id]
        shown = task.value if task.measure else None
        about = (task.id, task.subject, task.form, JOINER.join(task.labels), task.measure, shown)
        rows.append((person, *about, reaction, numbers[person], rating))
    frame = pl.DataFrame(rows, _COLUMNS, orient="row").sort("number", "item")
    order = ("number", "item", "form", "labels", "measure", "value", "rating", "reaction_ms", "subject", "participant")
    return frame.select(order)


def _items(study: Study, ratings: pl.DataFrame) -> pl.DataFrame:
    """A row a task, those without a rating too."""
    wanted = study.settings.target_answers
    rows = [
        (task.id, task.form, JOINER.join(task.labels), task.measure, task.value if task.measure else None)
        for task in _tasks(study)
    ]
    names = {"item": pl.String, "form": pl.String, "labels": pl.String, "measure": pl.String, "value": pl.Float64}
    counts = ratings.group_by("item").agg(
        pl.len().alias("ratings"), pl.col("rating").mean().alias("mean"), pl.col("rating").std().alias("std")
    )
    found = pl.DataFrame(rows, names, orient="row").join(counts, on="item", how="left", maintain_order="left")
    return found.with_columns(
        pl.col("ratings").fill_null(0), (wanted - pl.col("ratings").fill_null(0)).clip(0).alias("missing")
    )


def _values(study: Study) -> dict[str, dict[str, float]]:
    """What each measure says of each subject: from the tasks where a value is shown, else from `made.json`."""
    found: dict[str, dict[str, float]] = {}
    for task in _tasks(study):
        if task.measure:
            found.setdefault(task.subject, {})[task.measure] = task.value
    for subject, said in study.made.get("values", {}).items():
        found.setdefault(subject, {}).update({name: float(value) for name, value in said.items()})
    return found


def _scores(study: Study, ratings: pl.DataFrame, values: Mapping[str, Mapping[str, float]]) -> dict[str, RatingScores]:
    found = {}
    for form in FORMS:
        subjects = [task.subject for task in _tasks(study) if task.form == form]
        measures = list(dict.fromkeys(name for subject in subjects for name in values.get(subject, {})))
        own = ratings.filter(pl.col("form") == form)
        if subjects and study.settings.question == "fit":
            found[form] = fit_scores(own, measures)
        elif subjects:
            found[form] = likeness_scores(own, measures, values)
    return found


def _document(collected: CollectedRatings) -> dict[str, Any]:
    study, items = collected.study, collected.items
    return {
        "schema": SCHEMA,
        "hardlook": __version__,
        "study": {"title": study.settings.title, "fingerprint": study.fingerprint, "question": study.settings.question},
        "files": [RATINGS, ITEMS, REPORT, PAGE],
        "ratings": len(collected.ratings),
        "participants": collected.ratings["participant"].n_unique(),
        "items": len(items),
        "items_without_ratings": int((items["ratings"] == 0).sum()),
        "items_with_too_few": int((items["missing"] > 0).sum()),
        "ratings_wanted_of_an_item": study.settings.target_answers,
        "forms": {form: asdict(scores) for form, scores in collected.scores.items()},
        "rules": dict(collected.rules),
        "left_out": [*study.made.get("left_out", ()), *collected.left_out],
    }


def _finite(value: Any) -> Any:
    """The value as JSON can hold it: undefined numbers are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
