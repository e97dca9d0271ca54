"""Several models of one command: a page that sets their headline scores side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Dot, DotChart, Section, Table

if TYPE_CHECKING:
    from hardlook.contract.benchmark import Benchmark


def write_overview(benchmark: Benchmark, folders: Sequence[Path], out: Path) -> Path | None:
    """Write `report.html` into `out` from the runs that are scored; None while none is."""
    from hardlook.report.page import render_study
    from hardlook.runs.folder import RunFolder, write_whole

    cards = {
        folder.name: Scorecard.from_json(RunFolder(folder).scores_path.read_text(encoding="utf-8"))
        for folder in folders
        if RunFolder(folder).scores_path.is_file()
    }
    if not cards:
        return None
    page = render_study(
        overview_sections(benchmark, cards),
        title=f"{benchmark.card.title}: {len(cards)} models",
        summary=f"{benchmark.card.summary} Every model answered the same units; each has its own report in "
        f"{', '.join(f'`{name}/report.html`' for name in cards)}.",
        provenance={"benchmark": benchmark.card.name, "models": list(cards)},
    )
    write_whole(out / "report.html", page)
    return out / "report.html"


def overview_sections(benchmark: Benchmark, cards: dict[str, Scorecard]) -> list[Section]:
    """One chart a score over all units, best model first, and one table of all of them."""
    meanings = {score.name: score for score in benchmark.card.scores}
    known = [name for name in meanings if any(_headline(card, name) for card in cards.values())]
    charts = []
    for name in known:
        meaning = meanings[name]
        rows = [(model, score) for model, card in cards.items() if (score := _headline(card, name))]
        rows.sort(key=lambda row: -row[1].value if meaning.higher_is_better else row[1].value)
        better = "Higher is better." if meaning.higher_is_better else "Lower is better."
        charts.append(DotChart(meaning.title, f"{meaning.meaning}. {better}", tuple(_dot(*row) for row in rows)))
    table = Table(
        "All headline scores",
        "Intervals are in the charts; scores without a value have no units.",
        ("model", *(meanings[name].title for name in known)),
        tuple((model, *(_value(card, name) for name in known)) for model, card in cards.items()),
    )
    return [Section("Side by side", "", (*charts, table))]


def _headline(card: Scorecard, name: str) -> Score | None:
    return next((score for score in card.headline if score.name == name and score.value == score.value), None)


def _value(card: Scorecard, name: str) -> float | None:
    score = _headline(card, name)
    return score.value if score else None


def _dot(model: str, score: Score) -> Dot:
    low, high = (score.interval.low, score.interval.high) if score.interval else (None, None)
    return Dot(model, score.value, low, high)
