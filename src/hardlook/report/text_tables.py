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
import unicodedata
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
    # \textquotedbl is not in pdflatex's usual font encoding.
    '"': r"\char34{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{UPWARDS ARROW}": r"$\uparrow$",
    "\N{DOWNWARDS ARROW}": r"$\downarrow$",
    "\N{LEFTWARDS ARROW}": r"$\leftarrow$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{DAGGER}": r"$\dagger$",
    "\N{DOUBLE DAGGER}": r"$\ddagger$",
    "\N{LEFT DOUBLE QUOTATION MARK}": "``",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
    "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MIDDLE DOT}": r"$\cdot$",
    "\N{BULLET}": r"$\bullet$",
    "\N{DEGREE SIGN}": r"$^{\circ}$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{ALMOST EQUAL TO}": r"$\approx$",
    "\N{INFINITY}": r"$\infty$",
    "\N{FRACTION SLASH}": "/",
    "\N{HYPHEN}": "-",
    "\N{NON-BREAKING HYPHEN}": "-",
    "\N{LATIN SMALL LETTER SHARP S}": r"\ss{}",
    "\N{LATIN SMALL LETTER AE}": r"\ae{}",
    "\N{LATIN CAPITAL LETTER AE}": r"\AE{}",
    "\N{LATIN SMALL LIGATURE OE}": r"\oe{}",
    "\N{LATIN CAPITAL LIGATURE OE}": r"\OE{}",
    "\N{LATIN SMALL LETTER O WITH STROKE}": r"\o{}",
    "\N{LATIN CAPITAL LETTER O WITH STROKE}": r"\O{}",
    "\N{LATIN SMALL LETTER L WITH STROKE}": r"\l{}",
    "\N{LATIN CAPITAL LETTER L WITH STROKE}": r"\L{}",
    "\N{LATIN SMALL LETTER DOTLESS I}": r"\i{}",
    "\N{LATIN SMALL LETTER D WITH STROKE}": "d",
    "\N{LATIN CAPITAL LETTER D WITH STROKE}": "D",
}

# Accents that every font encoding has; the ogonek is not among them, and is left out.
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": "\\`",
    "\N{COMBINING ACUTE ACCENT}": "\\'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "\\^",
    "\N{COMBINING TILDE}": "\\~",
    "\N{COMBINING DIAERESIS}": '\\"',
    "\N{COMBINING MACRON}": "\\=",
    "\N{COMBINING DOT ABOVE}": "\\.",
    "\N{COMBINING RING ABOVE}": "\\r",
    "\N{COMBINING CARON}": "\\v",
    "\N{COMBINING BREVE}": "\\u",
    "\N{COMBINING DOUBLE ACUTE ACCENT}": "\\H",
    "\N{COMBINING CEDILLA}": "\\c",
    "\N{COMBINING DOT BELOW}": "\\d",
    "\N{COMBINING MACRON BELOW}": "\\b",
    "\N{COMBINING OGONEK}": "",
    "\N{COMBINING COMMA BELOW}": "",
}

# Capitals of Greek that look like Latin ones have no command of their own.
_GREEK_CAPITALS = dict(
    zip("\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7", "ABEZHIKMNOPTX", strict=True)
)
_GREEK_NAMES = {"FINAL SIGMA": "varsigma", "LAMDA": "lambda", "OMICRON": "o"}


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
            texts.append([format_bounds(row[index], row[index + 1], decimals[index], intervals) for row in cells])
            right.append(True)
        else:
            names.append(name)
            texts.append([_format_text(cell, decimals[index]) for cell in columns[index]])
            right.append(is_numeric_column(columns[index]))
    return names, [list(row) for row in zip(*texts, strict=True)], right


def format_bounds(low: Cell, high: Cell, decimals: int, style: IntervalStyle) -> str:
    """An interval as a cell: `[low, high]`, or plus-minus half their distance."""
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

    The result is ASCII, so that pdflatex compiles it under any font and input encoding: accents and Greek letters
    become commands, what has none is written as its number.

    >>> print(escape_latex("50 % of `a_b`"))
    50 \% of \texttt{a\_b}
    >>> print(escape_latex("Möwe 模"))
    M\"{o}we [U+6A21]
    """
    parts = CODE.split(text)
    escaped = ["".join(map(_escape_letter, unicodedata.normalize("NFC", " ".join(part.split("\n"))))) for part in parts]
    return "".join(rf"\texttt{{{part}}}" if index % 2 else part for index, part in enumerate(escaped))


def _escape_letter(letter: str) -> str:
    if letter in _LATEX:
        return _LATEX[letter]
    if letter.isascii():
        return letter if letter.isprintable() else " "
    base, *marks = list(unicodedata.normalize("NFKD", letter))
    if marks or base != letter:
        written = _escape_letter(base)
        for mark in marks:
            if mark in _ACCENTS:
                written = f"{_ACCENTS[mark]}{{{written}}}" if _ACCENTS[mark] else written
            elif unicodedata.combining(mark):
                return f"[U+{ord(letter):04X}]"
            else:  # a ligature or a fraction
                written += _escape_letter(mark)
        return written if "[U+" not in written else f"[U+{ord(letter):04X}]"
    return _name_greek(letter) or f"[U+{ord(letter):04X}]"


def _name_greek(letter: str) -> str:
    """A Greek letter as LaTeX; nothing for any other."""
    if letter in _GREEK_CAPITALS:
        return _GREEK_CAPITALS[letter]
    found = re.fullmatch("GREEK (SMALL|CAPITAL) LETTER ([A-Z]+|FINAL SIGMA)", unicodedata.name(letter, ""))
    if not found or not "\u0391" <= letter <= "\u03c9":
        return ""
    name = _GREEK_NAMES.get(found[2], found[2].lower())
    if name == "o":
        return "o"
    return f"$\\{name.capitalize() if found[1] == 'CAPITAL' else name}$"


def layout_markdown(columns: list[str], rows: list[list[str]], right: list[bool]) -> str:
    """A Markdown table of these texts; `right` says which columns are right-aligned."""

    def escape(text: str) -> str:
        return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())

    lines = [columns, ["---:" if side else "---" for side in right], *rows]
    return "".join("| " + " | ".join(map(escape, line)) + " |\n" for line in lines)
