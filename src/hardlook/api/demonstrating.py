"""`hl.demo`: every benchmark on the embedded world, with models that need nothing but the core install."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hardlook.api.calibrating import write_calibration
from hardlook.api.inline import embed_page
from hardlook.errors import ChangedRun
from hardlook.harness.calibration import build_calibration_section, calibrate
from hardlook.harness.registry import BUILT_IN, find_benchmark
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.harness.runs.progress import make_progress
from hardlook.harness.runs.scoring import ScoredRun
from hardlook.report.charts import draw_svg
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.differences import describe_difference, find_score_meaning
from hardlook.report.compare.document import PAGE, write_comparison
from hardlook.report.index import PREVIEW_WIDTH, IndexEntry, draw_preview, render_index
from hardlook.report.run_report import write_report

SWAPS = 999
TRAINED = {"metacoco": "protonet-caltech101"}
"""Networks in the package that the demo runs as well: trained on photographs, and asked about scenes they never saw."""


@dataclass(frozen=True)
class Demo:
    """What `hl.demo` wrote: the first page, and the pages that it links, relative to it."""

    index: Path
    pages: list[str]
    text: str = field(repr=False)

    def _repr_html_(self) -> str:
        return embed_page(self.text)


def demo(
    out: str | Path = "demo",
    *,
    benchmarks: str | Sequence[str] | None = None,
    progress: bool | Callable[[str], None] = True,
) -> Demo:
    """Run each benchmark on the planted world, with a sound and a faulty model, compare the two, and calibrate it.

    Args:
        out: The folder for `index.html` and the runs; runs that are there already are kept.
        benchmarks: Names of some of the benchmarks; None for all.
        progress: Whether to print what is under way; or a function of that text.
    """
    say = progress if callable(progress) else print if progress else _say_nothing
    given = [benchmarks] if isinstance(benchmarks, str) else benchmarks or BUILT_IN
    entries: list[IndexEntry] = []
    for name in [find_benchmark(one).card.name for one in given]:
        entries += _run_benchmark(name, Path(out), say, show_bars=bool(progress))
    page = render_index(
        entries,
        title="hardlook on the planted world",
        text="Every benchmark, run on scenes whose truth is known, with planted models whose faults are known. "
        "Open a report to see which classes, contexts and images a mean hides.",
    )
    index = Path(out) / "index.html"
    write_atomically(index, page)
    return Demo(index.resolve(), [entry.href for entry in entries], page)


def _say_nothing(text: str) -> None:
    pass


def _run_benchmark(name: str, out: Path, say: Callable[[str], None], *, show_bars: bool) -> list[IndexEntry]:
    card = find_benchmark(name).card
    entries, runs = [], []
    dial = next(dial for dial in card.dials if dial.moves)
    for title, setting in (("sound", 0.0), ("faulty", 0.3)):
        shown = _show_model(name, title, dial.model, dict(dial.arguments(setting)), out, say, show_bars=show_bars)
        runs.append(shown[0])
        entries.append(shown[1])
    if name in TRAINED:
        entries.append(_show_model(name, "trained", TRAINED[name], {}, out, say, show_bars=show_bars)[1])
    entries.append(_compare(name, runs, out, say))
    say(f"{name}: calibration")
    calibration = calibrate(name, card.calibrated)
    write_calibration(calibration, out / f"{name}-calibration")
    chart: Any = build_calibration_section(calibration).blocks[0]
    sentence = "Faults of planted models turned from 0 to 1: does the score follow them, and nothing else?"
    href = f"{name}-calibration/calibration.html"
    entries.append(
        IndexEntry(
            f"{card.title}: calibration",
            sentence,
            href,
            (),
            draw_svg(chart, key=f"{name}-calibration", width=PREVIEW_WIDTH),
        )
    )
    return entries


def _show_model(
    name: str,
    title: str,
    model: str,
    arguments: dict[str, Any],
    out: Path,
    say: Callable[[str], None],
    *,
    show_bars: bool,
) -> tuple[ScoredRun, IndexEntry]:
    """Run a model into `NAME-TITLE` with its report; the entry of the first page has its headline scores."""
    card, folder = find_benchmark(name).card, f"{name}-{title}"
    say(f"{name}: {model} {_format_arguments(arguments)}".rstrip())
    scored = _run(name, out / folder, model, arguments, show_bars=show_bars)
    write_report(scored)
    titles = {score.name: score.title for score in card.scores if score.headline}
    scores = [replace(score, name=titles[score.name]) for score in scored.scorecard.headline if score.name in titles]
    drawn, caption = draw_preview(scored.build_sections(), key=folder)
    sentence = f"{card.summary} Model: `{model}` {_format_arguments(arguments)}".rstrip() + "."
    entry = IndexEntry(f"{card.title}: {title} model", sentence, f"{folder}/report.html", scores, drawn, caption)
    return scored, entry


def _compare(name: str, runs: list[ScoredRun], out: Path, say: Callable[[str], None]) -> IndexEntry:
    """Compare the sound model with the faulty one; the entry has a sentence on the first headline score."""
    say(f"{name}: comparison")
    card, folder = runs[0].benchmark.card, f"{name}-comparison"
    compared = compare_runs(runs, names=("sound", "faulty"), swaps=SWAPS)
    write_comparison(compared, runs, out / folder / PAGE)
    first = compared.headline[0]
    return IndexEntry(
        f"{card.title}: sound against faulty",
        describe_difference(first, find_score_meaning(card, first.name)),
        f"{folder}/{PAGE}",
    )


def _run(name: str, folder: Path, model: str, arguments: dict[str, Any], *, show_bars: bool) -> ScoredRun:
    bars = make_progress if show_bars else None
    start = partial(launch, name, out=folder, model=model, model_args=arguments, show_progress=bars)
    try:
        done = start()
    except ChangedRun:
        # The folder holds a demo of an earlier version: set it aside, as `--new` does.
        done = start(settings=RunSettings(new=True))
    assert done.scored is not None
    return done.scored


def _format_arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in arguments.items())
