"""The results of a ratings study: ratings.csv, items.csv, report.json and page.html.

Every rating counts by itself: unlike clicks, ratings do not become invalid with their batch, and those of a batch that
was returned count too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook import __version__
from hardlook.collect.results.answers import list_dropped_batches
from hardlook.collect.results.exclusion_rules import ExclusionRules, find_excluded, parse_rules
from hardlook.collect.results.quality import measure_participants
from hardlook.collect.results.rating_scores import SCALE, MeasureDifference, RatingScores, score_fit, score_likeness
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import RatingTask
from hardlook.errors import DataError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.sections import Block, DistributionChart, Dot, DotChart, Section, Table
from hardlook.harness.stats.intervals import Estimate
from hardlook.harness.verdicts import CANNOT_TELL, MIN_CLUSTERS
from hardlook.report.json_values import to_json_value
from hardlook.report.page import render_study

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

SCHEMA = "hardlook.ratings-report/1"

RATINGS, ITEMS, REPORT, PAGE = "ratings.csv", "items.csv", "report.json", "page.html"

_FORMS = {"pair": "pairs of labels", "picture": "pictures"}

_LEVELS = {"ordinal": "by order", "interval": "by distance"}

_ALPHA = 0.05

_TABLE_ROWS = 400

_FIT = (
    "People saw a value and rated from 1 to 10 how well it fits. The score is the mean rating. Every participant saw a "
    "thing under one measure only, so no rating is a comparison of two values."
)

_LIKENESS = (
    "People saw no value and rated from 1 to 10 how alike the two are. The score is Spearman's correlation of a "
    "measure's values with the mean ratings: 1 where both give the same order, 0 where they have nothing in common."
)


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
    left_out: Sequence[Mapping[str, Any]]
    rules: Mapping[str, Any]


def export_ratings(study: Study, store: Store, out: Path, rules: ExclusionRules | None = None) -> dict[str, Any]:
    """Write all files of a ratings study into the folder `out`; return the document of report.json.

    Without `rules` those of the dashboard apply. Participants appear by number.
    """
    collected = collect_ratings(study, store, rules)
    document = build_document(collected)
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
    chosen = rules if rules is not None else parse_rules(store.rules())
    with store.one_snapshot():
        answers, people = store.answers(), store.participants()
        quality = measure_participants(study, answers, store.batches(), people, store.check_answers())
    excluded = find_excluded(quality, chosen)
    tasks = [task for task in study.tasks if isinstance(task, RatingTask) and not task.training]
    items = _list_items(tasks)
    dropped = answers["batch"].is_in(list_dropped_batches(study.settings, answers))
    ratings = _list_ratings(items, answers.filter(~dropped), quality)
    invalid = ~ratings["rating"].is_in(SCALE).fill_null(False)
    ruled_out = ratings["participant"].is_in(list(excluded)) & ~invalid
    counted = ratings.filter(~invalid & ~ruled_out)
    notes = [
        ("ratings", int(ruled_out.sum()), "a rule excludes their participants", sorted(excluded.values())),
        ("answers", int(invalid.sum()), "they are not ratings from 1 to 10", []),
        ("answers", int(dropped.sum()), "their batches were done in less time than they take", []),
    ]
    return CollectedRatings(
        study,
        counted,
        _summarise_items(items, counted, study.settings.target_answers),
        _score_forms(study, tasks, counted),
        [{"what": what, "count": n, "why": why, "examples": some[:5]} for what, n, why, some in notes if n],
        chosen.active_rules(),
    )


def _list_items(tasks: Sequence[RatingTask]) -> pl.DataFrame:
    """One row per task; `value` is null where none was shown."""
    names = dict.fromkeys(("item", "form", "labels", "measure", "subject"), pl.String)
    rows = [
        (task.id, task.form, " | ".join(task.labels), task.measure, task.subject, task.value if task.measure else None)
        for task in tasks
    ]
    return pl.DataFrame(rows, {**names, "value": pl.Float64}, orient="row")


def _list_ratings(items: pl.DataFrame, answers: pl.DataFrame, quality: pl.DataFrame) -> pl.DataFrame:
    """One row per answer, by participant and item."""
    given = answers.select("participant", "reaction_ms", item=pl.col("task"), rating=pl.col("value"))
    unknown = given.join(items, on="item", how="anti")
    if unknown.height:
        remedy = "pass the study's database"
        raise DataError("an answer to a task of another study", unit=unknown["item"][0], remedy=remedy)
    found = given.join(items, on="item").join(quality.select("participant", "number"), on="participant")
    order = ("number", "item", "form", "labels", "measure", "value", "rating", "reaction_ms", "subject", "participant")
    return found.sort("number", "item").select(order)


def _summarise_items(items: pl.DataFrame, ratings: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """One row per task, also without a rating."""
    counts = ratings.group_by("item").agg(
        pl.len().alias("ratings"), pl.col("rating").mean().alias("mean"), pl.col("rating").std().alias("std")
    )
    listed = items.select("item", "form", "labels", "measure", "value")
    found = listed.join(counts, on="item", how="left", maintain_order="left").with_columns(
        pl.col("ratings").fill_null(0)
    )
    return found.with_columns((wanted - pl.col("ratings")).clip(0).alias("missing"))


def _score_forms(study: Study, tasks: Sequence[RatingTask], ratings: pl.DataFrame) -> dict[str, RatingScores]:
    # The value of each measure by subject: from the tasks if values are shown, else from `made.json`.
    values: dict[str, dict[str, float]] = {}
    for task in tasks:
        if task.measure:
            values.setdefault(task.subject, {})[task.measure] = task.value
    for subject, by_measure in study.made.get("values", {}).items():
        values.setdefault(subject, {}).update({name: float(value) for name, value in by_measure.items()})
    found = {}
    for form in _FORMS:
        subjects = [task.subject for task in tasks if task.form == form]
        measures = list(dict.fromkeys(name for subject in subjects for name in values.get(subject, {})))
        own = ratings.filter(pl.col("form") == form)
        if subjects:
            fit = study.settings.question == "fit"
            found[form] = score_fit(own, measures) if fit else score_likeness(own, measures, values)
    return found


def build_document(collected: CollectedRatings) -> dict[str, Any]:
    """The content of report.json."""
    study, items = collected.study, collected.items
    document = {
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
    plain: dict[str, Any] = to_json_value({**document, "in_words": _describe_results(document, collected.scores)})
    return plain


def _describe_results(document: Mapping[str, Any], scores: Mapping[str, RatingScores]) -> list[str]:
    ratings, items, people = (document[name] for name in ("ratings", "items", "participants"))
    if not ratings:
        return ["There are no ratings yet.", f"{items} tasks have none."]
    sentences = [f"{ratings} ratings of {items} tasks by {people} {'person' if people == 1 else 'people'}."]
    if few := document["items_with_too_few"]:
        wanted, none = document["ratings_wanted_of_an_item"], document["items_without_ratings"]
        sentences.append(f"{few} tasks have fewer than the {wanted} ratings wanted, {none} of them none.")
    return sentences + [_describe_best(_FORMS[form], of_form) for form, of_form in scores.items()]


def _describe_best(name: str, scores: RatingScores) -> str:
    known = [one for one in scores.measures if one.score.value == one.score.value]
    if not known:
        return f"No score of a measure is defined yet for {name}."
    best = max(known, key=lambda one: one.score.value)
    value = f"{format_fixed(best.score.value, 2)}"
    if best.score.interval.defined:
        value += (
            f", 95 % interval {format_fixed(best.score.interval.low, 2)} to {format_fixed(best.score.interval.high, 2)}"
        )
    words = f"On {name} {best.measure} has the highest score ({value})"
    if len(known) == 1:
        return f"{words}, the only measure with a score."
    if all(one.score.value == best.score.value for one in known):
        return f"On {name} all measures have the same score ({value})."
    beaten = [
        one.second if one.first == best.measure else one.first
        for one in scores.differences
        if best.measure in (one.first, one.second) and one.adjusted <= _ALPHA and one.things >= MIN_CLUSTERS
    ]
    things = max((one.things for one in scores.differences), default=0)
    if things < MIN_CLUSTERS:
        return (
            f"{words}. {CANNOT_TELL} whether people prefer it: {things} things are rated for both of two measures, "
            f"and a verdict needs {MIN_CLUSTERS}."
        )
    if not beaten:
        return f"{words}. {CANNOT_TELL} whether people prefer it: no difference is beyond chance."
    return f"{words}, beyond chance above {', '.join(beaten)}: people prefer it."


def build_sections(collected: CollectedRatings) -> list[Section]:
    """All sections; those without ratings say so."""
    fit, sections = collected.study.settings.question == "fit", []
    for form, scores in collected.scores.items():
        sections += _build_form_sections(_FORMS[form], scores, fit)
    return [*sections, _build_items_section(collected), _build_left_out_section(collected)]


def _build_form_sections(name: str, scores: RatingScores, fit: bool) -> list[Section]:
    if not sum(map(sum, scores.distributions.values())):
        return [Section(f"Measures on {name}", f"There are no ratings of {name} yet.")]
    return [
        Section(f"Measures on {name}", _FIT if fit else _LIKENESS, _build_scores(name, scores, fit)),
        Section(
            f"Differences on {name}",
            "Each two measures on the same things. The test swaps the two on random things and counts how often the "
            "difference gets as large; p is corrected for all comparisons by Holm's method. "
            f"Below {_ALPHA} a difference is beyond chance."
            if scores.differences
            else "There is one measure, so nothing to compare.",
            (_build_difference_table(name, scores.differences),) if scores.differences else (),
        ),
        Section(f"Ratings of {name}", "", _build_distributions(name, scores)),
        _build_agreement_section(name, scores),
    ]


def _build_scores(name: str, scores: RatingScores, fit: bool) -> tuple[Block, Block]:
    score = "mean rating" if fit else "rank correlation"
    defined = [one for one in scores.measures if not math.isnan(one.score.value)]
    ordered = sorted(defined, key=lambda one: -one.score.value)
    dots = [Dot(one.measure, one.score.value, *_unpack_estimate(one.score)[1:]) for one in ordered]
    caption = "Higher is better. The bar is the 95 % interval over the things rated."
    chart = DotChart(f"Measures on {name}", caption, dots, axis=score)
    columns = ["measure", score, "from", "to", "ratings", "things"]
    rows = []
    for one in scores.measures:
        row = [one.measure, *_unpack_estimate(one.score), one.ratings, one.things]
        rows.append([*row, *_unpack_estimate(one.people)[1:]] if one.people else row)
    caption = "Intervals at 95 %: over things rated, how far the score would move with others of them"
    if fit:
        columns += ["people from", "people to"]
        caption += "; `people` over participants, with other people"
    return chart, Table(f"Scores of measures on {name}", f"{caption}.", columns, rows)


def _build_difference_table(name: str, differences: Sequence[MeasureDifference]) -> Block:
    rows = [
        (one.first, one.second, *_unpack_estimate(one.difference), *to_json_value([one.p, one.adjusted]), one.things)
        for one in differences
    ]
    columns = ("measure", "against", "difference", "from", "to", "p", "p corrected", "things")
    return Table(f"Differences between measures on {name}", "First minus second, on shared things.", columns, rows)


def _build_distributions(name: str, scores: RatingScores) -> tuple[Block, Block]:
    counted = {measure or "all": counts for measure, counts in scores.distributions.items()}
    groups = [
        (measure, [float(rating) for rating, n in zip(SCALE, counts, strict=True) for _ in range(n)])
        for measure, counts in counted.items()
        if sum(counts)
    ]
    rows: list[tuple[str | int, ...]] = [(measure, *counts) for measure, counts in counted.items()]
    return (
        DistributionChart(f"How {name} were rated", "Single ratings from 1 to 10.", groups, axis="rating"),
        Table(f"Counts of ratings of {name}", "", ("measure", *map(str, SCALE)), rows, decimals=0),
    )


def _build_agreement_section(name: str, scores: RatingScores) -> Section:
    if not scores.shared:
        text = "No task has two ratings yet, so agreement is unknown."
        return Section(f"Agreement on {name}", text)
    rows = [(_LEVELS[level], *_unpack_estimate(estimate)) for level, estimate in scores.agreement.items()]
    text = (
        f"Krippendorff's alpha over {scores.shared} tasks with two ratings at least, of {scores.raters} people: 1 is "
        "full agreement, 0 is chance. It is empty where all ratings are equal. Low agreement is not a fault of a "
        "measure; it means that more raters are needed."
    )
    table = Table(f"Alpha on {name}", "", ("alpha", "value", "from", "to"), rows)
    return Section(f"Agreement on {name}", text, (table,))


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
    """Value, low and high; None where undefined."""
    value, low, high = to_json_value([estimate.value, estimate.interval.low, estimate.interval.high])
    return value, low, high
