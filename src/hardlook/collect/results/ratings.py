"""The results of a ratings study: ratings.csv, items.csv, report.json and page.html.

Every rating counts by itself: unlike clicks, no batch makes one invalid, and a batch that was returned keeps its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook import __version__
from hardlook.collect.results.answers import number_participants
from hardlook.collect.results.exclusion_rules import ExclusionRules, find_excluded, parse_rules
from hardlook.collect.results.quality import measure_participants
from hardlook.collect.results.rating_scores import SCALE, MeasureDifference, RatingScores, score_fit, score_likeness
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import RatingTask
from hardlook.errors import DataError
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.sections import Block, DistributionChart, Dot, DotChart, Section, Table
from hardlook.harness.stats.intervals import Estimate
from hardlook.report.json_values import to_json_value
from hardlook.report.page import render_study

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

SCHEMA = "hardlook.ratings-report/1"

RATINGS, ITEMS, REPORT, PAGE = "ratings.csv", "items.csv", "report.json", "page.html"

_FORMS = ("pair", "picture")

_JOINER = " | "

_COLUMNS = {
    **dict.fromkeys(("participant", "item", "subject", "form", "labels", "measure"), pl.String),
    **dict.fromkeys(("value", "reaction_ms"), pl.Float64),
    **dict.fromkeys(("number", "rating"), pl.Int64),
}

_ALPHA = 0.05

_TABLE_ROWS = 400

_NAMES = {"pair": "pairs of labels", "picture": "pictures"}

_LEVELS = {"ordinal": "by order", "interval": "by distance"}


@dataclass(frozen=True)
class CollectedRatings:
    """Everything that a report is made of.

    `ratings` has one row per rating that counts, `items` one per task with their number and mean; `scores` are those of
    each form that has tasks, `left_out` rows like those of a study's `made.json`, `rules` the active exclusion rules.
    """

    study: Study
    ratings: pl.DataFrame
    items: pl.DataFrame
    scores: Mapping[str, RatingScores]
    left_out: tuple[Mapping[str, Any], ...]
    rules: Mapping[str, Any]


def export_ratings(study: Study, store: Store, out: Path, rules: ExclusionRules | None = None) -> dict[str, Any]:
    """Write all files of a ratings study into the folder `out`; return the document of report.json.

    Without `rules` those of the dashboard apply. Participants appear by number.
    """
    collected = collect_ratings(study, store, rules)
    document: dict[str, Any] = to_json_value({**_build_document(collected), "in_words": describe_results(collected)})
    page = render_study(
        build_sections(collected),
        title=f"Ratings: {study.settings.title}",
        kind="Ratings",
        summary=" ".join(document["in_words"]),
        provenance={name: document[name] for name in ("schema", "hardlook", "study", "rules", "files")},
    )
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / RATINGS, collected.ratings.drop("participant").rename({"number": "participant"}).write_csv())
    write_atomically(out / ITEMS, collected.items.write_csv())
    write_atomically(out / REPORT, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_atomically(out / PAGE, page)
    return document


def collect_ratings(study: Study, store: Store, rules: ExclusionRules | None = None) -> CollectedRatings:
    """Read the ratings, leave out those of excluded participants, and score the rest."""
    if study.settings.kind != "ratings":
        raise DataError(f"this is a study of {study.settings.kind}", file=study.path, remedy="pass a study of ratings")
    answers, people = store.answers(), store.participants()
    chosen = rules if rules is not None else parse_rules(store.rules())
    without = (
        find_excluded(measure_participants(study, answers, store.batches(), people), chosen) if len(people) else {}
    )
    every = _list_ratings(study, answers, people)
    invalid = every["rating"].is_null() | ~every["rating"].is_in(list(SCALE))
    barred = every["participant"].is_in(list(without)) & ~invalid
    counted = every.filter(~invalid & ~barred)
    notes = [
        ("ratings", int(barred.sum()), "a rule of exclusion leaves their participants out", sorted(without.values())),
        ("answers", int(invalid.sum()), "they are no rating from 1 to 10", []),
    ]
    return CollectedRatings(
        study,
        counted,
        _summarise_items(study, counted),
        _score_forms(study, counted),
        tuple({"what": what, "count": n, "why": why, "examples": some[:5]} for what, n, why, some in notes if n),
        chosen.active_rules(),
    )


def _list_tasks(study: Study) -> list[RatingTask]:
    return [task for task in study.tasks if isinstance(task, RatingTask) and not task.training]


def _list_ratings(study: Study, answers: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    numbers = dict(number_participants(people).select("id", "number").iter_rows())
    tasks = {task.id: task for task in _list_tasks(study)}
    rows = []
    wanted = ("participant", "task", "value", "reaction_ms")
    for person, task_id, rating, reaction in answers.select(wanted).iter_rows():
        if task_id not in tasks:
            raise DataError("an answer to a task of another study", unit=task_id, remedy="pass the study's database")
        task = tasks[task_id]
        shown = task.value if task.measure else None
        about = (task.id, task.subject, task.form, _JOINER.join(task.labels), task.measure, shown)
        rows.append((person, *about, reaction, numbers[person], rating))
    frame = pl.DataFrame(rows, _COLUMNS, orient="row").sort("number", "item")
    order = ("number", "item", "form", "labels", "measure", "value", "rating", "reaction_ms", "subject", "participant")
    return frame.select(order)


def _summarise_items(study: Study, ratings: pl.DataFrame) -> pl.DataFrame:
    """One row per task, also without a rating."""
    wanted = study.settings.target_answers
    rows = [
        (task.id, task.form, _JOINER.join(task.labels), task.measure, task.value if task.measure else None)
        for task in _list_tasks(study)
    ]
    names = {"item": pl.String, "form": pl.String, "labels": pl.String, "measure": pl.String, "value": pl.Float64}
    counts = ratings.group_by("item").agg(
        pl.len().alias("ratings"), pl.col("rating").mean().alias("mean"), pl.col("rating").std().alias("std")
    )
    found = pl.DataFrame(rows, names, orient="row").join(counts, on="item", how="left", maintain_order="left")
    return found.with_columns(
        pl.col("ratings").fill_null(0), (wanted - pl.col("ratings").fill_null(0)).clip(0).alias("missing")
    )


def _list_values(study: Study) -> dict[str, dict[str, float]]:
    """The value of each measure by subject: from the tasks if values are shown, else from `made.json`."""
    found: dict[str, dict[str, float]] = {}
    for task in _list_tasks(study):
        if task.measure:
            found.setdefault(task.subject, {})[task.measure] = task.value
    for subject, said in study.made.get("values", {}).items():
        found.setdefault(subject, {}).update({name: float(value) for name, value in said.items()})
    return found


def _score_forms(study: Study, ratings: pl.DataFrame) -> dict[str, RatingScores]:
    found, values = {}, _list_values(study)
    for form in _FORMS:
        subjects = [task.subject for task in _list_tasks(study) if task.form == form]
        measures = list(dict.fromkeys(name for subject in subjects for name in values.get(subject, {})))
        own = ratings.filter(pl.col("form") == form)
        if subjects and study.settings.question == "fit":
            found[form] = score_fit(own, measures)
        elif subjects:
            found[form] = score_likeness(own, measures, values)
    return found


def _build_document(collected: CollectedRatings) -> dict[str, Any]:
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


def describe_results(collected: CollectedRatings) -> list[str]:
    """The results in a few sentences."""
    ratings, items = collected.ratings, collected.items
    people = ratings["participant"].n_unique()
    if not len(ratings):
        return ["No rating has come in yet.", f"{len(items)} tasks wait for one."]
    sentences = [f"{len(ratings)} ratings of {len(items)} tasks by {people} {'person' if people == 1 else 'people'}."]
    few = int((items["missing"] > 0).sum())
    if few:
        wanted, none = collected.study.settings.target_answers, int((items["ratings"] == 0).sum())
        sentences.append(f"{few} tasks have fewer than the {wanted} ratings wanted, {none} of them none.")
    for form, scores in collected.scores.items():
        sentences += _describe_best(form, scores)
    return sentences


def build_sections(collected: CollectedRatings) -> list[Section]:
    """All sections; those without ratings say so."""
    sections = []
    for form, scores in collected.scores.items():
        sections += _build_form_sections(form, scores, collected)
    return [*sections, _build_items_section(collected), _build_left_out_section(collected)]


def _describe_best(form: str, scores: RatingScores) -> list[str]:
    known = [one for one in scores.measures if one.score.value == one.score.value]
    if not known:
        return [f"No score of a measure is defined yet for {_NAMES[form]}."]
    best = max(known, key=lambda one: one.score.value)
    words = f"On {_NAMES[form]} people side most with {best.measure} ({_format_estimate(best.score)})"
    if len(known) == 1:
        return [f"{words}, the only measure with a score."]
    if all(one.score.value == best.score.value for one in known):
        return [f"On {_NAMES[form]} all measures have the same score ({_format_estimate(best.score)})."]
    beaten = [
        one.second if one.first == best.measure else one.first
        for one in scores.differences
        if best.measure in (one.first, one.second) and one.adjusted <= _ALPHA
    ]
    tail = f"; it differs from {', '.join(beaten)} beyond chance." if beaten else "; no difference is beyond chance."
    return [words + tail]


def _build_form_sections(form: str, scores: RatingScores, collected: CollectedRatings) -> list[Section]:
    fit = collected.study.settings.question == "fit"
    name = _NAMES[form]
    if not sum(map(sum, scores.distributions.values())):
        return [Section(f"Measures on {name}", f"No rating of {name} has come in yet.")]
    return [
        Section(
            f"Measures on {name}",
            _explain_score(fit),
            (_draw_scores(name, scores, fit), _build_score_table(name, scores, fit)),
        ),
        Section(
            f"Differences on {name}",
            "Each two measures on the same things. The test swaps the two on random things and counts how often the "
            "difference gets as large; p is corrected for all comparisons by Holm's method. "
            f"Below {_ALPHA} a difference is beyond chance."
            if scores.differences
            else "There is one measure, so nothing to compare.",
            (_build_difference_table(name, scores.differences),) if scores.differences else (),
        ),
        Section(f"Ratings of {name}", "", (_draw_distributions(name, scores), _build_distribution_table(name, scores))),
        _build_agreement_section(name, scores),
    ]


def _explain_score(fit: bool) -> str:
    if fit:
        return (
            "People saw a value and rated from 1 to 10 how well it fits. The score is the mean rating. Every "
            "participant saw a thing under one measure only, so no rating is a comparison of two values."
        )
    return (
        "People saw no value and rated from 1 to 10 how alike the two are. The score is Spearman's correlation of a "
        "measure's values with the mean ratings: 1 where both give the same order, 0 where they have nothing in common."
    )


def _draw_scores(name: str, scores: RatingScores, fit: bool) -> Block:
    ordered = sorted(scores.measures, key=lambda one: -one.score.value if one.ratings else 0.0)
    defined = [one for one in ordered if one.score.value == one.score.value]
    dots = [Dot(one.measure, one.score.value, *_unpack_estimate(one.score)[1:]) for one in defined]
    caption = "Higher is better. The bar is the 95 % interval over the things rated."
    return DotChart(f"Measures on {name}", caption, dots, axis="mean rating" if fit else "rank correlation")


def _build_score_table(name: str, scores: RatingScores, fit: bool) -> Block:
    columns = ["measure", "mean rating" if fit else "rank correlation", "from", "to", "ratings", "things"]
    rows = []
    for one in scores.measures:
        row = [one.measure, *_unpack_estimate(one.score), one.ratings, one.things]
        rows.append([*row, *_unpack_estimate(one.people)[1:]] if one.people else row)
    if fit:
        columns += ["people from", "people to"]
    caption = "Intervals at 95 %: over things rated, how far the score would move with others of them"
    caption += "; `people` over participants, with other people." if fit else "."
    return Table(f"Scores of measures on {name}", caption, columns, rows)


def _build_difference_table(name: str, differences: Sequence[MeasureDifference]) -> Block:
    rows = [
        (
            one.first,
            one.second,
            *_unpack_estimate(one.difference),
            _none_if_nan(one.p),
            _none_if_nan(one.adjusted),
            one.things,
        )
        for one in differences
    ]
    columns = ("measure", "against", "difference", "from", "to", "p", "p corrected", "things")
    return Table(f"Differences between measures on {name}", "First less second, on shared things.", columns, rows)


def _draw_distributions(name: str, scores: RatingScores) -> Block:
    groups = [
        (measure or "all", [float(rating) for rating, n in enumerate(counts, 1) for _ in range(n)])
        for measure, counts in scores.distributions.items()
        if sum(counts)
    ]
    return DistributionChart(f"How {name} were rated", "Single ratings from 1 to 10.", groups, axis="rating")


def _build_distribution_table(name: str, scores: RatingScores) -> Block:
    rows: list[list[str | float | int | None]] = [
        [measure or "all", *counts] for measure, counts in scores.distributions.items()
    ]
    return Table(f"Counts of ratings of {name}", "", ("measure", *map(str, range(1, 11))), rows, decimals=0)


def _build_agreement_section(name: str, scores: RatingScores) -> Section:
    if not scores.shared:
        text = "No task has two ratings yet, so nothing can be said about agreement."
        return Section(f"Agreement on {name}", text)
    rows = [(_LEVELS[level], *_unpack_estimate(estimate)) for level, estimate in scores.agreement.items()]
    text = (
        f"Krippendorff's alpha over {scores.shared} tasks with two ratings at least, of {scores.raters} people: 1 is "
        "full agreement, 0 is chance. It is empty where all ratings are equal. Low agreement is no fault of a measure; "
        "it means that more raters are needed."
    )
    return Section(
        f"Agreement on {name}", text, (Table(f"Alpha on {name}", "", ("alpha", "value", "from", "to"), rows),)
    )


def _build_items_section(collected: CollectedRatings) -> Section:
    items = collected.items.sort("mean", descending=True, nulls_last=True, maintain_order=True)
    rows = items.select("labels", "form", "measure", "value", "ratings", "mean", "std").rows()
    text = "Every task with its ratings, the best rated first."
    if len(rows) > _TABLE_ROWS:
        text += f" The first {_TABLE_ROWS} of {len(rows)}; `items.csv` has all."
    columns = ("labels", "form", "measure", "value", "ratings", "mean rating", "standard deviation")
    return Section("Tasks", text, (Table("Ratings of tasks", "", columns, rows[:_TABLE_ROWS]),))


def _build_left_out_section(collected: CollectedRatings) -> Section:
    made = collected.study.made
    given = [*made.get("left_out", ()), *collected.left_out]
    rows = [(row["what"], row["count"], row["why"], ", ".join(map(str, row["examples"]))) for row in given]
    blocks = [Table("Left out", "", ("what", "count", "why", "examples"), rows)] if rows else []
    treated = [
        (label, name, how)
        for name, measure in made.get("measures", {}).items()
        for label, how in measure.get("treated", {}).items()
    ]
    if treated:
        caption = "Labels that a measure could not look up directly; they were rated nevertheless."
        blocks.append(Table("Labels treated specially", caption, ("label", "measure", "how"), treated[:_TABLE_ROWS]))
    return Section("What was left out", "" if rows else "Nothing was left out.", blocks)


def _unpack_estimate(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return _none_if_nan(estimate.value), _none_if_nan(estimate.interval.low), _none_if_nan(estimate.interval.high)


def _none_if_nan(value: float) -> float | None:
    return value if value == value else None


def _format_estimate(estimate: Estimate) -> str:
    if not estimate.interval.defined:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f}, 95 % interval {estimate.interval.low:.2f} to {estimate.interval.high:.2f}"
