"""Several models in one call: their arguments, a run of each, and a page that compares them.

>>> split_model_arguments(["ridge", "dn4"], {"size": "9", "ridge.scale": "2"})
{'ridge': {'size': '9', 'scale': '2'}, 'dn4': {'size': '9'}}
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.api.runs import Run, RunList
from hardlook.cloud.run_folders import locate_run
from hardlook.errors import HardlookError, ModelError, OptionError, RunError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.joined_runs.fold_models import fill_fold
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder, write_atomically
from hardlook.harness.runs.launch import offer_arguments
from hardlook.harness.scorecard import Scorecard, find_score, read_scores
from hardlook.harness.sections import DotChart, Section, Table, score_dot
from hardlook.models.families.downloads import forbid_downloads
from hardlook.models.object_identity import name_object
from hardlook.models.registry import MARKS, resolve

if TYPE_CHECKING:
    from hardlook.api.comparing import ComparedRuns


@dataclass(frozen=True)
class Overview:
    """The page over the runs of several models; `compared` where there are two scored runs that can be compared."""

    page: Path
    compared: ComparedRuns | None = None


class ModelRuns(RunList):
    """The runs of several models on one benchmark, in the order given: `runs[0]`, or by name `runs["ridge"]`.

    `overview` has their page and comparison; it is None while no run is scored, as while other shards are at work.
    """

    def __init__(self, runs: Mapping[str, Run], overview: Overview | None) -> None:
        super().__init__(list(runs.values()), tuple(runs))
        self.overview = overview

    @property
    def compared(self) -> ComparedRuns | None:
        """The comparison of the models, as `hl.compare` returns it; None where there is none."""
        return None if self.overview is None else self.overview.compared

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *([] if self.compared is None else [repr(self.compared)])])

    def _repr_html_(self) -> str:
        return super()._repr_html_() + ("" if self.compared is None else self.compared._repr_html_())


def run_models(
    benchmark: str | Benchmark,
    models: Sequence[Any],
    run_one: Callable[..., Run],
    *,
    given: Mapping[str, Any],
    model_args: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    offline: bool = False,
) -> ModelRuns:
    """Run each model in a folder of its name below `out`; `run_one` is `hl.run` with all other arguments.

    `given` are the benchmark's options by name.
    """
    found = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    named = {one if isinstance(one, str) else name_object(one): one for one in models}
    if not models:
        raise OptionError("model=[] names no model", remedy="`hl.models()` lists them")
    if len(named) < len(models):
        names = [one if isinstance(one, str) else name_object(one) for one in models]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise OptionError(
            f"{', '.join(repeated)} is there more than once, and each model has a folder of its name",
            remedy="run them one by one, each with its own `out`, and give the runs to hl.compare",
        )
    arguments = split_model_arguments(list(named), model_args or {})
    folder = Path(tempfile.mkdtemp(prefix="hardlook-")) if out is None else locate_run(Path(out).expanduser())
    with forbid_downloads(offline):
        check_models(
            found.card.role,
            {name: arguments[name] for name, one in named.items() if isinstance(one, str)},
            partial(offer_arguments, found, parse_options(found.options, dict(given), found.card.name)),
        )
        return run_each(
            found,
            list(named),
            folder,
            lambda name: run_one(benchmark, model=named[name], model_args=arguments[name], out=folder / name),
        )


def run_each(
    benchmark: Benchmark,
    names: Sequence[str],
    out: Path,
    run_one: Callable[[str], Run | None],
    show: Callable[[Overview], None] | None = None,
    more: Callable[[], Sequence[Section]] = tuple,
) -> ModelRuns:
    """Run one model after the other; the overview is written, and shown by `show`, also where a run stops.

    `run_one` returns None for a model that could not run and is left out. `more`, called after the last run, returns
    sections for the end of the overview.
    """
    if RunFolder(out).exists():
        what = "this folder holds a run, and the runs of several models need one of their own"
        raise RunError(what, file=out, remedy="choose an empty or a new folder for --out")
    runs: dict[str, Run] = {}
    overview = None
    try:
        for name in names:
            if (run := run_one(name)) is not None:
                runs[name] = run
    finally:
        overview = write_overview(benchmark, [out / name for name in names], out, more())
        if overview is not None and show is not None:
            show(overview)
    return ModelRuns(runs, overview)


def split_model_arguments(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each model's arguments: KEY=VALUE is for all models, NAME.KEY=VALUE for one and takes precedence."""
    own: dict[str, dict[str, Any]] = {name: {} for name in names}
    shared: dict[str, Any] = {}
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


def check_models(
    role: str,
    arguments: Mapping[str, Mapping[str, Any]],
    offer: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] = lambda name, given: given,
) -> None:
    """Raise an error, before anything runs, for a model that is unknown, has another role or lacks an argument.

    `offer` gives a model's arguments with those that the benchmark's options have for it.
    """
    for name, given in arguments.items():
        try:
            resolve(name, role, fill_fold(offer(name, given), 0))
        except ModelError as error:
            hint = "--model-arg NAME.KEY=VALUE is for one of several models" if given else None
            remedy = "; ".join(part for part in (error.remedy, hint) if part)
            raise ModelError(error.what, file=error.file, unit=error.unit, remedy=remedy or None) from error


def read_scorecards(folders: Sequence[Path]) -> dict[str, Scorecard]:
    """The scorecards of the runs that are scored, by the name of their folder."""
    paths = {folder.name: RunFolder(folder).scores_path for folder in folders}
    return {name: read_scores(path) for name, path in paths.items() if path.is_file()}


def write_overview(
    benchmark: Benchmark, folders: Sequence[Path], out: Path, more: Sequence[Section] = ()
) -> Overview | None:
    """Write `report.html` into `out` from the runs that are scored; None while none is.

    With two runs or more it is their comparison, with `comparison.json` beside it. `more` are sections that come last.
    """
    from hardlook.report.page import render_study

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
            scored = [folder for folder in folders if folder.name in cards]
            return Overview(page, _compare(scored, page, summary, more))
        except HardlookError as error:
            why = f" The runs cannot be compared: {error.what}."
    html = render_study(
        [*build_overview_sections(benchmark, cards), build_models_section([out / name for name in cards]), *more],
        kind="Comparison",
        title=f"{benchmark.card.title}: {len(cards)} models",
        summary=f"{benchmark.card.summary} {summary}{why}",
        provenance={"benchmark": benchmark.card.name, "models": list(cards)},
    )
    write_atomically(page, html)
    return Overview(page)


def _compare(folders: Sequence[Path], page: Path, summary: str, more: Sequence[Section] = ()) -> ComparedRuns:
    from hardlook.api.comparing import ComparedRuns
    from hardlook.report.compare.comparison import compare_runs, read_runs
    from hardlook.report.compare.document import write_comparison

    names = [folder.name for folder in folders]
    runs = read_runs(folders)
    compared = compare_runs(runs, names=[_label(name) for name in names])
    document = write_comparison(compared, runs, page, summary=summary, more=(build_models_section(folders), *more))
    return ComparedRuns(compared, [(run,) for run in runs], page, document)


def build_models_section(folders: Sequence[Path]) -> Section:
    """The models, with those that they work with, their marks and their own reports."""
    from hardlook.report.run_report import list_model_marks

    runs = {folder.name: Run(folder) for folder in folders}
    methods = {name: run.method for name, run in runs.items()}
    marks = {name: list_model_marks(run.model) for name, run in runs.items()}
    legend = [f"{mark}: {MARKS[mark]}" for mark in MARKS if any(mark in own for own in marks.values())]
    table = Table(
        "The models of this run",
        f"Marks: {'; '.join(legend)}." if legend else "No model has a mark.",
        ("model", *(["marks"] if legend else []), "its report"),
        tuple(
            (method, *([", ".join(marks[name])] if legend else []), f"{name}/report.html")
            for name, method in methods.items()
        ),
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
    from hardlook.report.run_report import list_model_marks

    return f"{model} (transductive)" if "transductive" in list_model_marks(model) else model
