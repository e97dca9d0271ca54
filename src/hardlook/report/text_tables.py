r"""Tables as text for papers and scripts: LaTeX with booktabs, Markdown, CSV.

LaTeX and Markdown are for readers: numbers are rounded, and `low` and `high` become one interval. CSV is for
programs: exact numbers, one column each.

>>> print(format_table(Table("T", "", ("class", "IoU"), [("cat & dog", 0.5)]), "latex"))
\begin{tabular}{lr}
\toprule
class & IoU \\
\midrule
cat \& dog & 0.500 \\
\bottomrule
\end{tabular}
<BLANKLINE>
"""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise
from typing import Literal

from hardlook.harness.sections import Table
from hardlook.report.formatting import MISSING, format_exact, format_number, is_number
from hardlook.report.html_tables import Cell, choose_cell_decimals, is_numeric_column, pad_rows
from hardlook.report.markup import CODE, strip_backticks

TextFormat = Literal["latex", "markdown", "csv"]
IntervalStyle = Literal["brackets", "plus-minus", "none"]

_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{UPWARDS ARROW}": r"$\uparrow$",
    "\N{DOWNWARDS ARROW}": r"$\downarrow$",
    "\N{DAGGER}": r"$\dagger$",
}


def format_table(table: Table, text_format: TextFormat, intervals: IntervalStyle = "brackets") -> str:
    """The table as text; `low` and `high` become `[low, high]`, plus-minus half their distance, or none."""
    if text_format == "csv":
        return _format_csv(table)
    columns, rows, right = _format_cells(table, intervals)
    if text_format == "markdown":
        return layout_markdown(columns, rows, right)
    return layout_latex([escape_latex(name) for name in columns], [[*map(escape_latex, row)] for row in rows], right)


def _format_csv(table: Table) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([strip_backticks(name) for name in table.columns])
    for cells in pad_rows(table.rows, len(table.columns)):
        writer.writerow([strip_backticks(cell) if isinstance(cell, str) else format_exact(cell) for cell in cells])
    return stream.getvalue()


def _format_cells(table: Table, intervals: IntervalStyle) -> tuple[list[str], list[list[str]], list[bool]]:
    """Column names, texts of the cells, and which columns are right-aligned."""
    cells = pad_rows(table.rows, len(table.columns))
    columns = [[row[index] for row in cells] for index in range(len(table.columns))]
    decimals = [choose_cell_decimals(column, table.decimals) for column in columns]
    low = next((index for index, pair in enumerate(pairwise(table.columns)) if pair == ("low", "high")), None)
    names, texts, right = [], [], []
    for index, name in enumerate(table.columns):
        if low is not None and index == low + 1:
            continue
        if index == low and intervals == "none":
            continue
        if index == low:
            names.append("interval" if intervals == "brackets" else "\N{PLUS-MINUS SIGN}")
            texts.append([_format_interval(row[index], row[index + 1], decimals[index], intervals) for row in cells])
            right.append(True)
        else:
            names.append(name)
            texts.append([_format_text(cell, decimals[index]) for cell in columns[index]])
            right.append(is_numeric_column(columns[index]))
    return names, [list(row) for row in zip(*texts, strict=True)], right


def _format_interval(low: Cell, high: Cell, decimals: int, style: IntervalStyle) -> str:
    if not (is_number(low) and is_number(high)):
        return MISSING
    if style == "plus-minus":
        return f"\N{PLUS-MINUS SIGN}{format_number((high - low) / 2, decimals)}"
    return f"[{format_number(low, decimals)}, {format_number(high, decimals)}]"


def _format_text(cell: Cell, decimals: int) -> str:
    if cell is None or cell == "" or (isinstance(cell, float) and not is_number(cell)):
        return MISSING
    return cell if isinstance(cell, str) else format_number(cell, decimals)


def layout_latex(columns: list[str], rows: list[list[str]], right: list[bool]) -> str:
    """A tabular of texts that are LaTeX already; `right` says which columns are right-aligned."""
    lines = [
        rf"\begin{{tabular}}{{{''.join('r' if side else 'l' for side in right)}}}",
        r"\toprule",
        " & ".join(columns) + r" \\",
        r"\midrule",
        # A bracket or star at the start of a row would be read as an argument of the line break before it.
        *(re.sub(r"^(?=[\[*])", "{}", " & ".join(row)) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    r"""The text with LaTeX's special characters escaped, and text in backticks set in typewriter font.

    >>> print(escape_latex("50 % of `a_b`"))
    50 \% of \texttt{a\_b}
    """
    parts = CODE.split(text)
    escaped = ["".join(_LATEX.get(letter, letter) for letter in " ".join(part.split("\n"))) for part in parts]
    return "".join(rf"\texttt{{{part}}}" if index % 2 else part for index, part in enumerate(escaped))


def layout_markdown(columns: list[str], rows: list[list[str]], right: list[bool]) -> str:
    """A Markdown table of these texts; `right` says which columns are right-aligned."""

    def escape(text: str) -> str:
        return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())

    lines = [columns, ["---:" if side else "---" for side in right], *rows]
    return "".join("| " + " | ".join(map(escape, line)) + " |\n" for line in lines)
