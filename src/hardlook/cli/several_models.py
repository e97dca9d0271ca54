"""Several models in one command: their names, their arguments, and a page that compares them.

>>> names = parse_model_names("ridge, dn4")
>>> split_model_arguments(names, {"size": "9", "ridge.scale": "2"})
{'ridge': {'size': '9', 'scale': '2'}, 'dn4': {'size': '9'}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.joined_runs.fold_models import fill_fold
from hardlook.harness.runs.folder import RunFolder, write_atomically
from hardlook.harness.scorecard import Scorecard, find_score, read_scores
from hardlook.harness.sections import DotChart, Section, Table, score_dot
from hardlook.models.registry import MARKS, resolve
from hardlook.report.compare.comparison import compare_runs, read_runs
from hardlook.report.compare.document import write_comparison
from hardlook.report.compare.terminal import print_comparison
from hardlook.report.page import render_study
from hardlook.report.run_report import list_model_marks


def parse_model_names(text: str | None) -> list[str]:
    """The names in `--model`, separated by commas; none where the flag is not given."""
    names = [word.strip() for word in (text or "").split(",") if word.strip()]
    if text is not None and not names:
        raise OptionError("--model names no model", remedy="`hardlook models` lists them")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise OptionError(
            f"--model names {', '.join(repeated)} more than once",
            remedy="name each model once; for other arguments run it again with another --out",
        )
    return names


def split_model_arguments(names: Sequence[str], given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Each model's arguments: KEY=VALUE is for all models, NAME.KEY=VALUE for one and takes precedence."""
    own: dict[str, dict[str, str]] = {name: {} for name in names}
    shared: dict[str, str] = {}
    for key, value in given.items():
        # The longest name, since names may have dots: `net.small.size` is for `net.small`, not for `net`.
        owner = max((name for name in names if key.startswith(f"{name}.")), key=len, default=None)
        if owner is not None:
            own[owner][key.removeprefix(f"{owner}.")] = value
        elif "." in key:
            raise OptionError(
                f"--model-arg {key} is for none of the models of this run",
                remedy=f"write KEY=VALUE, or NAME.KEY=VALUE with one of {', '.join(names)}",
            )
        else:
            shared[key] = value
    return {name: shared | own[name] for name in names}


def check_models(role: str, arguments: Mapping[str, Mapping[str, str]]) -> None:
    """Raise an error, before anything runs, for a model that is unknown, has another role or lacks an argument."""
    for name, given in arguments.items():
        try:
            resolve(name, role, fill_fold(given, 0))
        except ModelError as error:
            hint = "--model-arg NAME.KEY=VALUE is for one of several models" if given else None
            remedy = "; ".join(part for part in (error.remedy, hint) if part)
            raise ModelError(error.what, file=error.file, unit=error.unit, remedy=remedy or None) from error


def read_scorecards(folders: Sequence[Path]) -> dict[str, Scorecard]:
    """The scorecards of the runs that are scored, by the name of their folder."""
    paths = {folder.name: RunFolder(folder).scores_path for folder in folders}
    return {name: read_scores(path) for name, path in paths.items() if path.is_file()}


def write_overview(
    benchmark: Benchmark, folders: Sequence[Path], out: Path, console: Console | None = None
) -> Path | None:
    """Write `report.html` into `out` from the runs that are scored; None while none is.

    With two runs or more it is their comparison, with `comparison.json` beside it, and is printed to `console` where
    there is one.
    """
    cards = read_scorecards(folders)
    if not cards:
        return None
    absent = [folder.name for folder in folders if folder.name not in cards]
    summary = f"Each model has its own report in {', '.join(f'`{name}/report.html`' for name in cards)}." + (
        f" Not scored yet: {', '.join(absent)}." if absent else ""
    )
    page, why = out / "report.html", ""
    if len(cards) > 1:
        try:
            _write_compared([folder for folder in folders if folder.name in cards], page, summary, console)
        except HardlookError as error:
            why = f" The runs cannot be compared: {error.what}."
        else:
            return page
    html = render_study(
        [*build_overview_sections(benchmark, cards), build_models_section(list(cards))],
        kind="Comparison",
        title=f"{benchmark.card.title}: {len(cards)} models",
        summary=f"{benchmark.card.summary} {summary}{why}",
        provenance={"benchmark": benchmark.card.name, "models": list(cards)},
    )
    write_atomically(page, html)
    return page


def _write_compared(folders: Sequence[Path], page: Path, summary: str, console: Console | None) -> None:
    names = [folder.name for folder in folders]
    runs = read_runs(folders)
    compared = compare_runs(runs, names=[_label(name) for name in names])
    write_comparison(compared, runs, page, summary=summary, more=(build_models_section(names),))
    if console is not None:
        console.print()
        print_comparison(compared, console)


def build_models_section(names: Sequence[str]) -> Section:
    """The models with their marks and their own reports."""
    marks = {name: list_model_marks(name) for name in names}
    legend = [f"{mark}: {MARKS[mark]}" for mark in MARKS if any(mark in own for own in marks.values())]
    table = Table(
        "The models of this run",
        f"Marks: {'; '.join(legend)}." if legend else "No model has a mark.",
        ("model", *(["marks"] if legend else []), "its report"),
        tuple((name, *([", ".join(marks[name])] if legend else []), f"{name}/report.html") for name in names),
    )
    return Section("The models", "", (table,))


def build_overview_sections(benchmark: Benchmark, cards: dict[str, Scorecard]) -> list[Section]:
    """One chart per score over all units, best model first, and one table of all scores."""
    meanings = {score.name: score for score in benchmark.card.scores}
    known = [name for name in meanings if any(find_score(card, name) for card in cards.values())]
    charts, values = [], {}
    for name in known:
        meaning = meanings[name]
        rows = [(model, score) for model, card in cards.items() if (score := find_score(card, name))]
        values[name] = {model: score.value for model, score in rows}
        down = meaning.higher_is_better or not meaning.ranked
        rows.sort(key=lambda row: -row[1].value if down else row[1].value)
        better = f"{meaning.direction.capitalize()}." if meaning.ranked else "Neither higher nor lower is better."
        dots = tuple(score_dot(score, _label(model)) for model, score in rows)
        charts.append(DotChart(meaning.title, f"{meaning.meaning}. {better}", dots))
    table = Table(
        "All headline scores",
        "Intervals are in the charts; scores without a value have no units.",
        ("model", *(meanings[name].title for name in known)),
        tuple((_label(model), *(values[name].get(model) for name in known)) for model in cards),
    )
    return [Section("Side by side", "", (*charts, table))]


def _label(model: str) -> str:
    """The model's name, marked where it is transductive: such scores are not comparable with those of the others."""
    return f"{model} (transductive)" if "transductive" in list_model_marks(model) else model
