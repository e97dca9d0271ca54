"""The page and the files of `hardlook clicks evaluate`: scores, rankings, slices, published numbers and pictures."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.data.object_instances import normalize_dataset_name
from hardlook.errors import DataError
from hardlook.harness.rounding import format_fixed, format_percent
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.scorecard import note_to_json
from hardlook.harness.sections import Block, DotChart, Example, Gallery, Picture, Section, Table
from hardlook.metrics.click_sets import fasano_franceschini
from hardlook.metrics.regions import crop_around
from hardlook.models.named_model import NamedModel
from hardlook.rclicks.click_evaluation.evaluation import ClickEvaluation
from hardlook.rclicks.click_evaluation.ranking import describe_rankings
from hardlook.rclicks.click_evaluation.stem_scores import (
    HIGHER_IS_BETTER,
    METRICS,
    GroupScores,
    StemScores,
    draw_as_many,
    map_distribution,
)
from hardlook.rclicks.click_maps.colours import draw_heat_map
from hardlook.rclicks.published import TITLES, published_click_models, published_numbers
from hardlook.rclicks.user_clicks.comparison import PAIR_METRICS, PairScores
from hardlook.rclicks.user_clicks.loading import build_left_out_section, describe_missing_masks, describe_unread
from hardlook.rclicks.user_clicks.readings import EVALUATION, reading_table
from hardlook.rclicks.user_clicks.stems import ClickedStem
from hardlook.report.estimates import estimate_to_json, finite_or_none, format_estimate, make_estimate_dot
from hardlook.report.formatting import format_count
from hardlook.report.json_values import dump_json

# Stems per gallery of models, and from each end in the gallery of devices.
SHOWN, DEVICES_SHOWN = 4, 3
BOTH_DEVICES = " (pc, mobile)"
CLICKED_REGIONS = {"first": "the object", "fn": "what is missing", "fp": "what is too much"}
MEANINGS = {
    "ks": "The share of draws that a two-dimensional test cannot tell from people's clicks. Higher is better.",
    "pl1": "Mean distance between a drawn and a real click, in widths and heights of the object. Lower is better.",
    "wd": "How far drawn clicks would have to move to become the real ones, in object sizes. Lower is better.",
    "nss": "The map at people's clicks, in standard deviations above its mean. Higher is better.",
    "pde": "The map's probability at people's clicks, times 100,000. Higher is better.",
}
SCALE = dict.fromkeys(METRICS, 1.0) | {"pde": 1e5}
HEADS = tuple("PDE x 1e5" if metric == "pde" else metric.upper() for metric in METRICS)
NAMES = {"dataset": "dataset", "click_type": "click type", "device": "device", "display_mode": "display mode"}
_PAIRS = (
    "Differences between models on the same stems, with 95 % intervals from resampled images. A model is called better "
    "where the interval leaves 0 out; many comparisons are made, so a narrow lead may be chance."
)
_SLICES = (
    "Click types: first is the whole object, fn what a segmentation missed, fp what it had too much. A device's row "
    "scores the models against that device's clicks alone, so it has fewer clicks per stem and a milder test; the rows "
    "are of the stems that both devices have clicks on. A later round is of one device, so it is in neither."
)
_LOOK = (
    "The first picture shows where people clicked, with the region they were asked for. The others show a model's map "
    "(brighter is likelier) with as many clicks drawn from it, and whether the test can tell this one draw from people."
)
_DEVICES = (
    "Clicks of the two devices on the same stems, with at least 10 clicks of each. KS is the share of stems on which "
    "the test cannot tell them apart."
)
_MODES = (
    "Clicks after each way of showing the object against clicks after a text. KS is the share of stems on which the "
    "test cannot tell them apart; a mode that is alike biases people least."
)


def write_evaluation(evaluation: ClickEvaluation, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write tables, numbers and the page; return the numbers."""
    from hardlook.report.page import render_study

    words = describe_evaluation(evaluation)
    document = evaluation_document(evaluation, given, words)
    sections = build_sections(evaluation, words, given["readings"])
    galleries = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    page = render_study(
        sections,
        title="Click models against people's clicks",
        summary="How well click models say where people click to point at an object or to correct a segmentation.",
        provenance={name: document[name] for name in ("schema", "hardlook", *given, "models")},
        pictures=draw_examples(galleries, evaluation),
    )
    write_atomically(out / "table.csv", slice_table(evaluation))
    columns = ("model", *(field.name for field in fields(StemScores)))
    rows = [(model, *asdict(row).values()) for model, found in evaluation.results.rows.items() for row in found]
    write_atomically(out / "per_stem.csv", format_csv(columns, rows))
    write_atomically(out / "evaluation.json", dump_json(document))
    write_atomically(out / "page.html", page)
    return document


def scored_slices(evaluation: ClickEvaluation) -> Iterator[tuple[str, str, str, GroupScores]]:
    """Model, column, value and scores: all stems first, then every slice."""
    for name, scores in evaluation.overall.items():
        yield name, "all", "", scores
    for column, by_model in evaluation.slices.items():
        for name, groups in by_model.items():
            for group in groups:
                yield name, column, group.group[column], group


def slice_table(evaluation: ClickEvaluation) -> str:
    """`table.csv`: a row per model and slice, with intervals."""
    columns = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    rows = []
    for model, column, value, group in scored_slices(evaluation):
        estimates = [group.scores[metric] for metric in METRICS]
        cells = [cell for one in estimates for cell in (one.value, one.interval.low, one.interval.high)]
        rows.append((model, column, value, group.stems, *cells, group.ks_undefined, group.fell_back))
    return format_csv(("model", "slice", "value", "stems", *columns, "ks_undefined", "fell_back"), rows)


def format_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Numbers with seven digits, texts and counts as they are, nothing for what is undefined."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        finite = ("" if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in row)
        numbers = (int(cell) if isinstance(cell, bool) else cell for cell in finite)
        writer.writerow(f"{cell:.7g}" if isinstance(cell, float) else cell for cell in numbers)
    return text.getvalue()


def evaluation_document(evaluation: ClickEvaluation, given: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """All numbers as JSON values; undefined ones are null."""
    import hardlook

    return {
        "schema": "hardlook.clicks-evaluation/1",
        "hardlook": hardlook.__version__,
        **given,
        "models": {name: asdict(one.identity) for name, one in evaluation.models.items()},
        "in_words": list(words),
        "scores": [
            {"model": model, "slice": column, "value": value, **_group_to_json(group)}
            for model, column, value, group in scored_slices(evaluation)
        ],
        "best": [
            {
                "metric": one.metric,
                "model": one.best,
                "leads": {
                    name: {**(estimate_to_json(lead) or {}), "better": one.beats(name)}
                    for name, lead in one.leads.items()
                },
            }
            for one in evaluation.rankings
        ],
        "pc_against_mobile": [{**group.group, **_group_to_json(group)} for group in evaluation.devices],
        "modes_against_text": {mode: _group_to_json(group) for mode, group in evaluation.mode_scores.items()},
        "left_out": [note_to_json(note) for note in evaluation.left_out],
    }


def _group_to_json(group: GroupScores) -> dict[str, Any]:
    scores = {metric: estimate_to_json(estimate) for metric, estimate in group.scores.items()}
    return {"stems": group.stems, **scores, "ks_undefined": group.ks_undefined, "fell_back": group.fell_back}


def describe_evaluation(evaluation: ClickEvaluation) -> list[str]:
    """The main results in sentences."""
    first = next(iter(evaluation.overall.values()))
    who = "simulated people" if evaluation.clicked.planted else "people"
    models, stems = format_count(len(evaluation.models), "click model"), format_count(first.stems, "stem")
    words = [f"{models} against the clicks of {who} on {stems}.", *describe_rankings(evaluation.rankings)]
    if rows := evaluation.results.devices.rows:
        alike = f"{sum(row.ks for row in rows)} of {format_count(len(rows), 'stem')}"
        words.append(f"Clicks on a PC and on a mobile device do not differ significantly on {alike}.")
    words += describe_missing_masks(evaluation.left_out)
    if evaluation.results.unread:
        words.append(describe_unread(evaluation.results.unread))
    return words


def build_sections(evaluation: ClickEvaluation, words: Sequence[str], readings: Mapping[str, str]) -> list[Section]:
    """What the page shows."""
    sections = [
        Section("What this means", "\n\n".join(words), (_overall_table(evaluation), *_charts(evaluation))),
        *([Section("By slice", _SLICES, sliced)] if (sliced := _slice_blocks(evaluation)) else []),
        *published_sections(evaluation, readings["wd"]),
        Section("Stems to look at", _LOOK, model_galleries(evaluation)),
    ]
    if evaluation.rankings:
        sections.insert(1, Section("Which model is better", _PAIRS, (_lead_table(evaluation),)))
    if evaluation.results.devices.rows:
        table = _pair_table("PC against mobile", "dataset", {one.group["dataset"]: one for one in evaluation.devices})
        sections.append(Section("PC and mobile", _DEVICES, (table, device_gallery(evaluation.results.devices.rows))))
    if modes := evaluation.mode_scores:
        sections.append(
            Section(
                "Ways of showing the object",
                _MODES,
                (_pair_table("Display modes against text", "display mode", modes),),
            )
        )
    blocks = (model_table(evaluation.models), reading_table(readings, EVALUATION))
    return [*sections, build_left_out_section("What was left out, and what ran", evaluation.left_out, *blocks)]


def _score_cells(group: GroupScores) -> list[float | None]:
    """The metrics of a row; their intervals are in the charts and in table.csv."""
    return [finite_or_none(group.scores[metric].value * SCALE[metric]) for metric in METRICS]


def model_table(models: Mapping[str, NamedModel]) -> Table:
    """The click models with their settings and what they say of themselves."""
    rows = []
    for name, one in models.items():
        args = {key: value for key, value in one.identity.args.items() if value not in (None, "")}
        settings = ", ".join(f"{key}={value}" for key, value in args.items())
        rows.append((name, settings, str(getattr(one.model, "conduct", ""))))
    return Table("Click models", "", ("model", "settings", "conduct"), rows)


def _overall_table(evaluation: ClickEvaluation) -> Table:
    rows = [(name, group.stems, *_score_cells(group)) for name, group in evaluation.overall.items()]
    caption = (
        f"Means over stems, {evaluation.settings.draws} draws per stem. The charts have 95 % intervals: images are "
        "resampled, stems of one image together."
    )
    return Table("All stems", caption, ("model", "stems", *HEADS), rows)


def _charts(evaluation: ClickEvaluation) -> list[Block]:
    """A chart per metric, the best model first."""
    charts: list[Block] = []
    for metric, head in zip(METRICS, HEADS, strict=True):
        sign = -1 if HIGHER_IS_BETTER[metric] else 1
        scores = {name: group.scores[metric] for name, group in evaluation.overall.items()}
        ordered = sorted(scores.items(), key=lambda item: sign * item[1].value)
        dots = [make_estimate_dot(name, score, scale=SCALE[metric]) for name, score in ordered]
        charts.append(DotChart(head, MEANINGS[metric], dots, axis=head))
    return charts


def _slice_blocks(evaluation: ClickEvaluation) -> list[Block]:
    """For each column that has several groups: KS with intervals, and a table of all metrics."""
    blocks: list[Block] = []
    for column, by_model in evaluation.slices.items():
        values = sorted({group.group[column] for groups in by_model.values() for group in groups})
        if len(values) < 2:
            continue
        rows = [
            (value, name, group)
            for value in values
            for name, groups in by_model.items()
            for group in groups
            if group.group[column] == value
        ]
        dots = [make_estimate_dot(name, group.scores["ks"], value) for value, name, group in rows]
        blocks.append(DotChart(f"KS by {NAMES[column]}", "", dots, axis="KS"))
        cells = [(value, name, group.stems, *_score_cells(group)) for value, name, group in rows]
        blocks.append(Table(f"All metrics by {NAMES[column]}", "", (NAMES[column], "model", "stems", *HEADS), cells))
    return blocks


def _lead_table(evaluation: ClickEvaluation) -> Table:
    rows = []
    for one in evaluation.rankings:
        head = HEADS[METRICS.index(one.metric)]
        for name, lead in one.leads.items():
            dot = make_estimate_dot(name, lead, scale=SCALE[one.metric])
            rows.append((head, one.best, name, dot.value, dot.low, dot.high, one.verdict_on(name)))
    caption = "Its value less the other's, on the same stems. For PL1 and WD a lead is below 0."
    columns = ("metric", "best", "other", "difference", "low", "high", "verdict")
    return Table("The best model's lead", caption, columns, rows)


def _pair_table(title: str, column: str, groups: Mapping[str, GroupScores]) -> Table:
    rows: list[tuple[str | int, ...]] = [
        (name, group.stems, *(format_estimate(group.scores[metric], 3) for metric in PAIR_METRICS))
        for name, group in groups.items()
    ]
    return Table(title, "", (column, "stems", "KS", "PL1", "WD"), rows)


HERE, PAPER = "here", "published"


def published_sections(evaluation: ClickEvaluation, wd: str) -> list[Section]:
    """A section where a dataset or a display mode is one of the paper's; none else."""
    tables = (_published_models(evaluation), _published_devices(evaluation), _published_modes(evaluation))
    if not any(table.rows for table in tables):
        return []
    text = (
        "The published rows rest on all clicks of a dataset (of TETRIS on its 500 validation images), on 100 draws per "
        "stem and on WD over the box's diagonal. Rows of fewer stems, other click types or other readings are shown "
        "beside them without being comparable. The paper's saliency model is a fixation network whose weights are not "
        "available."
    )
    if wd != "released":
        text += " WD ran by the reading `paper` here, so it is not comparable."
    return [Section("Beside the published numbers", text, [table for table in tables if table.rows])]


def _published_models(evaluation: ClickEvaluation) -> Table:
    rows: list[tuple[str | float | int | None, ...]] = []
    found = evaluation.slices.get("dataset", {})
    for dataset, published in published_click_models().items():
        here: list[tuple[str | float | int | None, ...]] = [
            (dataset, model, HERE, group.stems, *(group.scores[metric].value * SCALE[metric] for metric in METRICS))
            for model, groups in found.items()
            for group in groups
            if group.group["dataset"] == dataset
        ]
        if here:
            rows += here
            rows += [
                (dataset, model, PAPER, None, *(one[metric] * SCALE[metric] for metric in METRICS))
                for model, one in published.items()
            ]
    return Table("Click models", "Tables 3 and 6 of the paper.", ("dataset", "model", "from", "stems", *HEADS), rows)


def _published_devices(evaluation: ClickEvaluation) -> Table:
    numbers = published_numbers()
    rows = [
        (name, group.stems, group.scores["ks"].value, numbers.number("table-8", TITLES[name], "KS"))
        for group in evaluation.devices
        if (name := group.group["dataset"]) in TITLES
    ]
    caption = "Table 8. Its WD and PL1 are wrong, since clicks on PCs entered as (x, x), and are left out here."
    return Table("PC against mobile", caption, ("dataset", "stems", "KS here", "KS published"), rows)


def _published_modes(evaluation: ClickEvaluation) -> Table:
    numbers = published_numbers()
    printed = {normalize_dataset_name(name): name for name in numbers.rows("table-1")}
    rows: list[tuple[str | float | int | None, ...]] = []
    for mode, group in evaluation.mode_scores.items():
        if mode in printed:
            rows.append((mode, HERE, group.stems, *(group.scores[metric].value for metric in PAIR_METRICS)))
            cells = (numbers.number("table-1", printed[mode], metric.upper()) for metric in PAIR_METRICS)
            rows.append((mode, PAPER, None, *cells))
    return Table("Display modes", "Table 1.", ("display mode", "from", "stems", "KS", "PL1", "WD"), rows)


def model_galleries(evaluation: ClickEvaluation) -> list[Gallery]:
    """Stems where the best model by KS fits best, where it fits worst, and where models differ most."""
    best = max(evaluation.models, key=lambda name: evaluation.overall[name].scores["ks"].value)
    rows = {name: evaluation.results.get_stem_rows(name) for name in evaluation.models}
    ks = np.array([[row.ks for row in found] for found in rows.values()])
    leading = ks[list(rows).index(best)]
    galleries = [
        (f"Where {best} fits", "Highest share of draws that pass for people's clicks.", -leading),
        (f"Where {best} does not fit", "Lowest share of such draws.", leading),
    ]
    if len(rows) > 1:
        spread = np.ptp(ks, axis=0)
        galleries.append(("Where models differ", "Largest difference between the shares of two models.", -spread))
    found = []
    for title, caption, key in galleries:
        places = np.argsort(key, kind="stable")
        # Where all models pass as often, they do not differ.
        places = places[np.ptp(ks, axis=0)[places] > 0] if title == "Where models differ" else places
        found.append(Gallery(title, caption, [_example(rows, place) for place in places[:SHOWN].tolist()]))
    return [gallery for gallery in found if gallery.examples]


def device_gallery(pairs: Sequence[PairScores]) -> Gallery:
    """Stems whose clicks on the two devices are most and least alike."""
    order = sorted(pairs, key=lambda row: (not row.ks, -row.p if row.p == row.p else 1.0))
    examples = [
        Example(
            f"{row.dataset}/{row.full_stem}{BOTH_DEVICES}",
            f"{row.clicks} clicks on a PC and {row.other_clicks} on a mobile device: "
            f"{_verdict(row.ks, row.p, row.why)}; PL1 {format_fixed(row.pl1, 2)}, WD {format_fixed(row.wd, 3)}.",
        )
        for row in list(dict.fromkeys([*order[:DEVICES_SHOWN], *order[-DEVICES_SHOWN:]]))
    ]
    return Gallery("PC beside mobile", "The most alike first, then the least alike.", examples)


def draw_examples(galleries: Sequence[Gallery], evaluation: ClickEvaluation) -> dict[str, Sequence[Picture] | str]:
    """The pictures of every example, or the reason why there are none."""
    known = {source.key: source for source in evaluation.clicked.sources}
    found: dict[str, Sequence[Picture] | str] = {}
    for unit in dict.fromkeys(example.unit for gallery in galleries for example in gallery.examples):
        try:
            clicked = known[unit.removesuffix(BOTH_DEVICES)].read()
        except DataError as error:
            found[unit] = str(error)
            continue
        if unit.endswith(BOTH_DEVICES):
            found[unit] = [
                _draw_clicks(part, f"{part.device}: {format_count(len(part.clicks), 'click')}")
                for part in clicked.by_device()
            ]
        else:
            found[unit] = draw_stem(clicked.stem, evaluation.models, evaluation.settings.seed)
    return found


def draw_stem(stem: ClickedStem, models: Mapping[str, NamedModel], seed: int) -> list[Picture]:
    """People's clicks on the region, then each model's map with the first draw and its verdict."""
    close = crop_around(stem.error)
    pictures = [_draw_clicks(stem, f"{len(stem.clicks)} people's clicks on {CLICKED_REGIONS[stem.click_type]}")]
    for name, one in models.items():
        distribution = map_distribution(stem, one.model)
        drawn = draw_as_many(stem, distribution, 1, seed)[0]
        test = fasano_franceschini(drawn.astype(np.float64), stem.clicks)
        image = close.cut(draw_heat_map(stem.image, distribution.chances))
        label = f"{name}: {_verdict(test.passes, test.p, test.why)}"
        pictures.append(Picture(label, image, points=_click_marks(close.moved(drawn), stem.positive), ordered=False))
    return pictures


def _draw_clicks(stem: ClickedStem, label: str) -> Picture:
    close = crop_around(stem.error)
    points = _click_marks(close.moved(stem.clicks), stem.positive)
    return Picture(label, close.cut(stem.image), mask=close.cut(stem.error), points=points, ordered=False)


def _example(rows: Mapping[str, Sequence[StemScores]], place: int) -> Example:
    row = next(iter(rows.values()))[place]
    shares = ", ".join(f"{name} {format_percent(found[place].ks)}" for name, found in rows.items())
    return Example(f"{row.dataset}/{row.full_stem}", f"Draws that pass for people's clicks: {shares}.")


def _click_marks(points: Sequence[Any], positive: bool) -> list[tuple[float, float, bool]]:
    return [(x, y, positive) for x, y in points]


def _verdict(passes: bool, p: float, why: str) -> str:
    if why:
        return "no test"
    return f"{'alike' if passes else 'different'} (p {format_fixed(p, 2)})"
