r"""Tables as text for papers and scripts: LaTeX with booktabs, Markdown, CSV.

LaTeX and Markdown are for readers: numbers are rounded, and `low` and `high` become one interval. CSV is for
programs: exact numbers, a column each.

>>> print(write_table(Table("T", "", ("class", "IoU"), [("cat & dog", 0.5)]), "latex"))
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
from collections.abc import Sequence
from typing import Literal

from hardlook.contract.sections import Table
from hardlook.report.markup import plain
from hardlook.report.numerals import NOTHING, column_decimals, is_number, numeral

Cell = str | float | int | None
Form = Literal["latex", "markdown", "csv"]
Intervals = Literal["brackets", "plus-minus"]
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
}
_CODE = re.compile(r"`([^`]+)`")


def write_table(table: Table, form: Form, intervals: Intervals = "brackets") -> str:
    """The table as text with a final line break.

    `intervals` writes columns `low` and `high`, where both follow a number, as `[low, high]` or as plus-minus half
    their distance.
    """
    if form == "csv":
        return _csv(table)
    columns, rows, right = _readable(table, intervals)
    return _latex(columns, rows, right) if form == "latex" else _markdown(columns, rows, right)


def _csv(table: Table) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([plain(name) for name in table.columns])
    for row in table.rows:
        cells = [*row, *[None] * (len(table.columns) - len(row))]
        writer.writerow([plain(cell) if isinstance(cell, str) else _exact(cell) for cell in cells])
    return stream.getvalue()


def _exact(cell: float | int | None) -> str:
    if cell is None or not is_number(cell):
        return ""
    return repr(float(cell)) if isinstance(cell, float) else repr(cell)


def _readable(table: Table, intervals: Intervals) -> tuple[list[str], list[list[str]], list[bool]]:
    """Column names, texts of the cells, and which columns are set to the right."""
    width = len(table.columns)
    cells = [[*row, *[None] * (width - len(row))] for row in table.rows]
    columns = [[row[index] for row in cells] for index in range(width)]
    decimals = [_decimals(column, table.decimals) for column in columns]
    low = _low_column(table.columns)
    names, texts, right = [], [], []
    for index, name in enumerate(table.columns):
        if low is not None and index == low + 1:
            continue
        if index == low:
            names.append("interval" if intervals == "brackets" else "\N{PLUS-MINUS SIGN}")
            texts.append([_interval(row[index], row[index + 1], decimals[index], intervals) for row in cells])
            right.append(True)
        else:
            names.append(name)
            texts.append([_text(cell, decimals[index]) for cell in columns[index]])
            right.append(_is_numeric(columns[index]))
    return names, [list(row) for row in zip(*texts, strict=True)], right


def _low_column(names: Sequence[str]) -> int | None:
    """Where `low` stands, if `high` follows it."""
    places = [index for index in range(len(names) - 1) if (names[index], names[index + 1]) == ("low", "high")]
    return places[0] if places else None


def _interval(low: Cell, high: Cell, decimals: int, form: Intervals) -> str:
    if (
        not isinstance(low, int | float)
        or not isinstance(high, int | float)
        or not (is_number(low) and is_number(high))
    ):
        return NOTHING
    if form == "plus-minus":
        return f"\N{PLUS-MINUS SIGN}{numeral((high - low) / 2, decimals)}"
    return f"[{numeral(low, decimals)}, {numeral(high, decimals)}]"


def _text(cell: Cell, decimals: int) -> str:
    if cell is None or cell == "" or (isinstance(cell, float) and not is_number(cell)):
        return NOTHING
    return cell if isinstance(cell, str) else numeral(cell, decimals)


def _is_numeric(cells: Sequence[Cell]) -> bool:
    said = [cell for cell in cells if cell is not None and cell != ""]
    return bool(said) and all(isinstance(cell, int | float) for cell in said)


def _decimals(cells: Sequence[Cell], decimals: int | None) -> int:
    return column_decimals([cell for cell in cells if isinstance(cell, int | float)], decimals)


def _latex(columns: list[str], rows: list[list[str]], right: list[bool]) -> str:
    lines = [
        rf"\begin{{tabular}}{{{''.join('r' if side else 'l' for side in right)}}}",
        r"\toprule",
        " & ".join(map(latex_text, columns)) + r" \\",
        r"\midrule",
        *(_guarded(" & ".join(map(latex_text, row))) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    r"""The text with LaTeX's own letters escaped, and back-ticked words in typewriter type.

    >>> print(latex_text("50 % of `a_b`"))
    50 \% of \texttt{a\_b}
    """
    parts = _CODE.split(text)
    escaped = ["".join(_LATEX.get(letter, letter) for letter in " ".join(part.split("\n"))) for part in parts]
    return "".join(rf"\texttt{{{part}}}" if index % 2 else part for index, part in enumerate(escaped))


def _guarded(row: str) -> str:
    """The row; an opening bracket or a star after a line break would be read as part of the break."""
    return "{}" + row if row.startswith(("[", "*")) else row


def _markdown(columns: list[str], rows: list[list[str]], right: list[bool]) -> str:
    lines = [columns, ["---:" if side else "---" for side in right], *rows]
    return "".join("| " + " | ".join(_markdown_cell(cell) for cell in line) + " |\n" for line in lines)


def _markdown_cell(text: str) -> str:
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())
