"""The page of a leaderboard: an overview, a chart and a table for each headline score, slices, published tables.

Notes of rows are numbered: rows carry the numbers, and one table has the texts.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hardlook.harness.benchmark import BenchmarkCard
from hardlook.harness.published import PublishedCell, PublishedTable
from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import Dot, DotChart, Section, Table
from hardlook.report.formatting import format_slice
from hardlook.report.html_tables import Cell
from hardlook.report.leaderboard.board import Leaderboard, Row, ScoreRanking

MAX_ROWS, MAX_DOTS, MAX_NAMED = 500, 30, 3

# Columns of published numbers that are all smaller than this are written with exponents.
TINY = 0.001
COLUMNS = ("rank", "method", "kind", "note", "value", "low", "high", "n", "reading", "folder or source")
NoteNumbers = Mapping[tuple[str, str], int]


def write_pages(boards: Sequence[Leaderboard], out: Path) -> tuple[list[Path], Path]:
    """Write the pages (with an index page first, if several) and the Parquet table; return the paths of both."""
    from hardlook.harness.runs.folder import write_atomically
    from hardlook.report.index import IndexEntry, render_index
    from hardlook.report.leaderboard.document import build_frame

    pages = [out / "leaderboard.html"]
    if len(boards) == 1:
        write_atomically(pages[0], render_leaderboard(boards[0]))
    else:
        entries = []
        for board in boards:
            page = out / f"leaderboard-{make_file_name(board.card.name)}.html"
            write_atomically(page, render_leaderboard(board))
            pages.append(page)
            leader = describe_leader(board.rankings[0]) if board.rankings else "No run has a headline score."
            entries.append(IndexEntry(board.card.title, f"Runs: {len(board.entries)}. {leader}", page.name))
        write_atomically(pages[0], render_index(entries, title="Leaderboards"))
    table, content = out / "leaderboard.parquet", io.BytesIO()
    build_frame(list(boards)).write_parquet(content)
    write_atomically(table, content.getvalue())
    return pages, table


def render_leaderboard(board: Leaderboard) -> str:
    """The page of one leaderboard."""
    from hardlook.report.page import render_study

    card = board.card
    return render_study(
        build_sections(board),
        kind="Leaderboard",
        title=f"Leaderboard of {card.title}",
        summary=card.summary + (f" Source: {card.citation}" if card.citation else ""),
        provenance={
            "benchmark": {"name": card.name, "version": card.version},
            "first run": board.first.run.folder,
            "runs": len(board.entries),
        },
    )


def make_file_name(benchmark: str) -> str:
    """A benchmark's name as part of a file name, unsafe characters replaced.

    >>> make_file_name("closed-miou"), make_file_name("my/../own")
    ('closed-miou', 'my-..-own')
    """
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in benchmark)


def build_sections(board: Leaderboard) -> list[Section]:
    """All sections, those without content left out."""
    shown = group_rows(board)[:MAX_ROWS]
    shown += [row for ranking in board.rankings for row in ranking.rows[:MAX_ROWS]]
    shown += [row for ranking in board.slices for row in ranking.rows][:MAX_ROWS]
    numbers = number_notes(shown)
    found = [
        build_overview_section(board, numbers),
        build_notes_section(numbers),
        board.costs,
        *(_build_ranking_section(ranking, numbers) for ranking in board.rankings),
        _build_slices_section(board, numbers),
        build_runs_section(board),
        _build_skipped_section(board),
        build_published_section(board.card),
    ]
    return [section for section in found if section is not None]


def build_overview_section(board: Leaderboard, numbers: NoteNumbers) -> Section:
    """One row per method: its rank by the first score, and its values of all scores."""
    shown, values = group_rows(board), _collect_values(board)
    meanings = [ranking.meaning for ranking in board.rankings]
    # Published costs alone would be columns of empty cells for the runs.
    costs = list(dict.fromkeys(name for entry in board.entries for name in entry.costs))
    rows: list[tuple[Cell, ...]] = []
    for row in shown[:MAX_ROWS]:
        found = values[_identify(row)]
        by_first = found.get(meanings[0].name)
        method = (by_first.rank if by_first else None, row.method, row.kind, format_note_numbers(row, numbers))
        values_and_costs = (
            *(get_value(found.get(one.name)) for one in meanings),
            *(row.costs.get(name) for name in costs),
        )
        rows.append((*method, *values_and_costs, row.folder or row.source))
    caption, leader = "No run has a headline score.", ""
    if meanings:
        caption = f"Ranks and notes are those of {meanings[0].title}; rows without a rank come last."
        leader = describe_leader(board.rankings[0])
    table = Table(
        "All methods",
        caption + describe_truncation(len(shown)),
        ("rank", "method", "kind", "note", *(meaning.title for meaning in meanings), *costs, "folder or source"),
        tuple(rows),
        decimals=choose_value_decimals([row.value for ranking in board.rankings for row in ranking.rows]),
    )
    return Section("Ranking", " ".join(filter(None, [leader, _describe_runs(board)])), (table,))


def group_rows(board: Leaderboard) -> list[Row]:
    """One row per method: those ranked by the first score, then other runs, then other published rows."""
    groups: dict[str, list[Row]] = {"ranked": [], "run": [], "published": []}
    for found in _collect_values(board).values():
        row = next(iter(found.values()))
        by_first = found.get(board.rankings[0].meaning.name)
        groups["ranked" if by_first and by_first.rank is not None else row.kind].append(row)
    return [row for group in groups.values() for row in group]


def _collect_values(board: Leaderboard) -> Mapping[tuple[str, str, str], Mapping[str, Row]]:
    """For each method its rows by score name; methods are in the order of the first ranking that has them."""
    values: dict[tuple[str, str, str], dict[str, Row]] = {}
    for ranking in board.rankings:
        for row in ranking.rows:
            values.setdefault(_identify(row), {})[ranking.meaning.name] = row
    return values


def _identify(row: Row) -> tuple[str, str, str]:
    return row.kind, row.method, row.folder or row.source


def _describe_runs(board: Leaderboard) -> str:
    first, flagged = board.first, sum(bool(entry.flags) for entry in board.entries)
    sentences = [
        f"Runs: {len(board.entries)}. The others are compared with `{first.run.folder}` ({first.method}), the earliest "
        "of the largest group of runs with the same units, data, settings and readings."
        if len(board.entries) > 1
        else f"One run: `{first.run.folder}` ({first.method})."
    ]
    if flagged:
        sentences.append(f"Runs without a rank, since they differ from it: {flagged}.")
    return " ".join([*sentences, "Ranks are by value alone; `hardlook compare` tests which differences hold."])


def describe_leader(ranking: ScoreRanking) -> str:
    """Who is first, in a sentence."""
    if not ranking.meaning.ranked:
        return "This score is neither good nor bad by itself, so methods are not ranked by it."
    best = [row for row in ranking.rows if row.rank == 1]
    if not best:
        return "No row can be ranked."
    count = sum(row.rank is not None for row in ranking.rows)
    names = " and ".join(row.method + (" (published)" if row.kind == "published" else "") for row in best[:MAX_NAMED])
    names += f" and {len(best) - MAX_NAMED} more" if len(best) > MAX_NAMED else ""
    decimals = choose_value_decimals([row.value for row in ranking.rows])
    return f"First of {count} ranked: {names} with {format_fixed(best[0].value, decimals)}."


def number_notes(rows: Iterable[Row]) -> NoteNumbers:
    """A number for each note, from 1, in the order of their first occurrence.

    >>> first = Row("run", "a", 0.5, flags=("other units than the first run",))
    >>> numbers = number_notes([first, Row("run", "b", 0.4), Row("run", "c", 0.3, flags=first.flags)])
    >>> format_note_numbers(first, numbers), format_note_numbers(Row("run", "b", 0.4), numbers), len(numbers)
    ('1', '', 1)
    """
    numbers: dict[tuple[str, str], int] = {}
    for row in rows:
        for note in row.notes:
            numbers.setdefault(note, len(numbers) + 1)
    return numbers


def format_note_numbers(row: Row, numbers: NoteNumbers) -> str:
    """The numbers of a row's notes, as a cell has them: `1, 3`."""
    return ", ".join(str(numbers[note]) for note in row.notes if note in numbers)


def build_notes_section(numbers: NoteNumbers) -> Section | None:
    """The texts behind the numbers; None where no row has a note."""
    if not numbers:
        return None
    rows = [(number, f"{heading.capitalize()}: {text}") for (heading, text), number in numbers.items()]
    table = Table(
        "What the numbers in the column `note` say",
        "`No rank`: why a row has none. `Beside the paper`: what a run says of itself and the published values. "
        f"`Published`: which runs a published value can be compared with.{describe_truncation(len(rows))}",
        ("note", "text"),
        tuple(rows[:MAX_ROWS]),
    )
    return Section("Notes", "", (table,))


def _build_ranking_section(ranking: ScoreRanking, numbers: NoteNumbers) -> Section:
    meaning = ranking.meaning
    better = f"{meaning.direction.capitalize()}." if meaning.ranked else "Neither higher nor lower is better."
    groups = {
        "runs": [row for row in ranking.of("run") if not row.flags],
        "runs that differ from the first": [row for row in ranking.of("run") if row.flags],
        "published": ranking.of("published"),
    }
    dots = [
        Dot(ranking.label(row), row.value, row.low, row.high, group)
        for group, rows in groups.items()
        for row in rows[:MAX_DOTS]
    ]
    long = any(len(rows) > MAX_DOTS for rows in groups.values())
    drawn = f" The best {MAX_DOTS} of each group are drawn." if long else ""
    sentence = meaning.meaning[:1].upper() + meaning.meaning[1:]
    chart = DotChart(meaning.title, f"{sentence}. {better}{drawn}", tuple(dots), axis=meaning.title)
    table = Table(
        f"{meaning.title}: every row",
        (
            "Best first. A row without a rank cannot be compared with the first run: its notes say why."
            if meaning.ranked
            else "Highest first; methods are not ranked by this score."
        )
        + describe_truncation(len(ranking.rows)),
        COLUMNS,
        tuple(make_cells(row, numbers) for row in ranking.rows[:MAX_ROWS]),
        decimals=choose_value_decimals([row.value for row in ranking.rows]),
    )
    place = f" The runs are of {format_slice(ranking.where)}." if ranking.where else ""
    return Section(meaning.title, describe_leader(ranking) + place, (chart, table))


def _build_slices_section(board: Leaderboard, numbers: NoteNumbers) -> Section | None:
    rows: list[tuple[Cell, ...]] = [
        (ranking.meaning.title, format_slice(ranking.where), *make_cells(row, numbers))
        for ranking in board.slices
        for row in ranking.rows
    ]
    if not rows:
        return None
    table = Table(
        "Slice by slice",
        f"Best first in each.{describe_truncation(len(rows))}",
        ("score", "slice", *COLUMNS),
        tuple(rows[:MAX_ROWS]),
        choose_value_decimals([row.value for ranking in board.slices for row in ranking.rows]),
    )
    return Section("By slice", "Slices that both runs and published tables have, each ranked by itself.", (table,))


def make_cells(row: Row, numbers: NoteNumbers) -> tuple[Cell, ...]:
    """The cells of `COLUMNS`, with the numbers of the row's notes.

    >>> make_cells(Row("run", "net", 0.5, n=9, folder="runs/a", rank=1), {})
    (1, 'net', 'run', '', 0.5, None, None, 9, '', 'runs/a')
    """
    method = (row.rank, row.method, row.kind, format_note_numbers(row, numbers))
    return (*method, get_value(row), row.low, row.high, row.n, row.reading, row.folder or row.source)


def get_value(row: Row | None) -> float | None:
    """The value; None where it is undefined."""
    return None if row is None or math.isnan(row.value) else row.value


def choose_value_decimals(values: Sequence[float]) -> int:
    """Three for scores below 10, two for percent and clicks.

    >>> choose_value_decimals([0.5, 0.25]), choose_value_decimals([95.2, math.nan])
    (3, 2)
    """
    return 3 if max((abs(value) for value in values if not math.isnan(value)), default=0.0) < 10 else 2


def describe_truncation(count: int) -> str:
    """The note on rows that a long table leaves out.

    >>> describe_truncation(3), describe_truncation(900)
    ('', ' The first 500 of 900 rows; leaderboard.parquet has all.')
    """
    return f" The first {MAX_ROWS} of {count} rows; leaderboard.parquet has all." if count > MAX_ROWS else ""


def build_runs_section(board: Leaderboard) -> Section:
    """Folder, date, data and readings of each run."""
    rows = []
    for one in board.entries:
        run, card = one.run, one.run.scorecard
        readings = ", ".join(f"{reading.name}={reading.value}" for reading in card.readings)
        rows.append((one.method, run.folder, run.date, card.units.scored, one.data, readings))
    caption = (
        f"Earliest first. The others are compared with `{board.first.run.folder}`.{describe_truncation(len(rows))}"
    )
    columns = ("method", "folder", "date", "units", "data", "readings")
    return Section("The runs", "", (Table("Every run", caption, columns, tuple(rows[:MAX_ROWS])),))


def _build_skipped_section(board: Leaderboard) -> Section | None:
    if not board.left_out:
        return None
    rows = [(one.folder, one.benchmark or "unknown", one.why, one.remedy) for one in board.left_out]
    caption = "They are in no table above."
    if len(rows) > MAX_ROWS:
        caption += f" The first {MAX_ROWS} of them; `hardlook leaderboard --json` has all."
    columns = ("folder", "benchmark", "why", "remedy")
    table = Table("Skipped runs", caption, columns, tuple(rows[:MAX_ROWS]))
    return Section("What was left out", f"Run folders that could not be used: {len(rows)}.", (table,))


def build_published_section(card: BenchmarkCard) -> Section | None:
    """Every table of the card, whole; None where there is none."""
    tables = card.published_tables()
    if not tables:
        return None
    sources = ", ".join(dict.fromkeys(table.source for table in tables if table.source))
    text = f"Number for number as printed, also where numbers contradict each other. Source: {sources}."
    return Section("Published tables", text, tuple(make_published_block(table) for table in tables))


def make_published_block(table: PublishedTable) -> Table:
    """A published table as a block of a page, with as many decimals as its longest number has.

    Columns of very small numbers become texts such as 4.06e-05, since they would need too many decimals.

    >>> make_published_block(PublishedTable("table-1", "T", ("m", "PDE"), (("a", 4.06e-05), ("b", 2e-05)))).rows
    (('a', '4.06e-05'), ('b', '2.00e-05'))
    """
    columns: list[Sequence[PublishedCell]] = []
    for index in range(len(table.columns)):
        column = [row[index] for row in table.rows]
        if 0 < max((abs(cell) for cell in column if isinstance(cell, int | float)), default=0) < TINY:
            column = [f"{cell:.2e}" if isinstance(cell, int | float) else cell for cell in column]
        columns.append(column)
    decimals = max((_count_decimals(cell) for column in columns for cell in column), default=0)
    return Table(table.title, table.note, table.columns, tuple(zip(*columns, strict=True)), decimals)


def _count_decimals(cell: PublishedCell) -> int:
    """The number of decimals.

    >>> _count_decimals(65.088), _count_decimals(3.0), _count_decimals(7), _count_decimals("a")
    (3, 1, 0, 0)
    """
    return len(repr(cell).partition(".")[2]) if isinstance(cell, float) else 0
