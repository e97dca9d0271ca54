"""Tables as text, read back by small parsers of the three formats."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.sections import Table
from hardlook.report.text_tables import escape_latex, format_table

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"], exclude_characters="`"))

WORDS = TEXTS.map(lambda text: text.strip()).filter(lambda text: text not in ("", "\N{EN DASH}"))

# What LaTeX prints for each command that we may write.
COMMANDS = {
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">",
    "textbar": "|", "char34": '"',
}  # fmt: skip

MATHS = {
    "$-$": "\N{MINUS SIGN}", r"$\pm$": "\N{PLUS-MINUS SIGN}", r"$\uparrow$": "\N{UPWARDS ARROW}",
    r"$\downarrow$": "\N{DOWNWARDS ARROW}", r"$\dagger$": "\N{DAGGER}",
}  # fmt: skip

TOKEN = re.compile(
    r"\\(?P<word>[a-z]+[0-9]*)\{\}|\\(?P<letter>[&%$#_{}])|(?P<maths>\$[^$]*\$)|(?P<end> \\\\$)|(?P<cell> & )"
)


def latex_rows(text: str) -> tuple[str, list[list[str]]]:
    """The columns' letters and the rows of a tabular, as a reader of the page would see them."""
    lines = text.splitlines()
    assert lines[1] == r"\toprule" and lines[3] == r"\midrule"
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    letters = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[0])[1]
    return letters, [_latex_row(line) for line in [lines[2], *lines[4:-2]]]


def _latex_row(line: str) -> list[str]:
    cells, place = [""], 0
    line = line.removeprefix("{}")
    while place < len(line):
        match = TOKEN.match(line, place)
        if match is None:
            assert line[place] not in "&%$#_{}~^\\", f"unescaped {line[place]!r} in {line!r}"
            cells[-1] += line[place]
            place += 1
            continue
        place = match.end()
        if match["end"]:
            assert place == len(line)
            return cells
        if match["cell"]:
            cells.append("")
        else:
            cells[-1] += COMMANDS[match["word"]] if match["word"] else match["letter"] or MATHS[match["maths"]]
    raise AssertionError(f"a row that does not end: {line!r}")


def markdown_rows(text: str) -> list[list[str]]:
    rows = [re.findall(r"\| ((?:\\.|[^\\|])*?) (?=\|)", line) for line in text.splitlines()]
    return [[re.sub(r"\\(.)", r"\1", cell).replace("&lt;", "<") for cell in cells] for cells in rows]


ASCII_WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="` ")).filter(bool)

# All that pdflatex may see in a cell: text, and commands of its own in every font encoding.
SAFE = re.compile(
    r"(?:[ !'()*+,\-./0-9:;=?@A-Z\[\]a-z`]|\\[&%$#_{}]|\\(?:text(?:backslash|asciitilde|asciicircum|less|greater|bar)"
    r"|char34|ldots|ss|ae|AE|oe|OE|o|O|l|L|i)\{\}|\$(?:-|\^\{\\circ\}|\\[A-Za-z]+)\$)*"
)
ACCENT = re.compile(r"\\(?:[`'^~\"=.]|[rvuHcdb])\{([^{}]|\\[a-zA-Z]+\{\})\}")


def is_safe(text):
    """Whether the text is ASCII with commands of pdflatex alone; accents are read from the inside out."""
    while ACCENT.search(text):
        text = ACCENT.sub("x", text)
    return text.isascii() and SAFE.fullmatch(text) is not None


@given(st.lists(st.tuples(ASCII_WORDS, ASCII_WORDS), min_size=1, max_size=4))
def test_any_text_comes_back_from_latex(rows):
    letters, read = latex_rows(format_table(Table("t", "", ("a", "b"), rows), "latex"))
    assert letters == "ll"
    assert read == [[*row] for row in [("a", "b"), *rows]]


@given(TEXTS)
def test_any_text_is_such_that_pdflatex_compiles_it(text):
    assert is_safe(escape_latex(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Möwe", r"M\"{o}we"),
        ("Mo\u0308we", r"M\"{o}we"),
        ("naïve Ångström", r"na\"{i}ve \r{A}ngstr\"{o}m"),
        ("Łódź, Ærø, ß", r"\L{}\'{o}d\'{z}, \AE{}r\o{}, \ss{}"),
        ("\u1ebf", r"\'{\^{e}}"),
        ("w\u0105\u017c", r"wa\.{z}"),
        ("\u03b1\u03a9\u0391", r"$\alpha$$\Omega$A"),
        ("\ufb01t \u00bd", "fit 1/2"),
        ("model-\u6a21\u578b \U0001f600", "model-[U+6A21][U+578B] [U+1F600]"),
        ("\u201cbest\u201d \u2026", r"``best'' \ldots{}"),
    ],
)
def test_letters_that_ascii_lacks_become_commands_or_numbers(text, expected):
    assert escape_latex(text) == expected
    assert is_safe(expected)


@given(st.lists(st.lists(WORDS.filter(lambda text: "&" not in text), min_size=2, max_size=2), min_size=1, max_size=4))
def test_any_text_comes_back_from_markdown(rows):
    names, _, *read = markdown_rows(format_table(Table("t", "", ("a", "b"), rows), "markdown"))
    assert names == ["a", "b"] and read == rows


@given(st.lists(st.tuples(TEXTS, st.floats(), st.integers()), max_size=5))
def test_csv_is_exact(rows):
    read = list(csv.reader(io.StringIO(format_table(Table("t", "", ("name", "x", "n"), rows), "csv"))))
    assert read[0] == ["name", "x", "n"]
    for (name, x, n), cells in zip(rows, read[1:], strict=True):
        assert cells[0] == name and int(cells[2]) == n
        assert (cells[1] == "") if not math.isfinite(x) else float(cells[1]) == x


TABLE = Table("t", "", ("class", "IoU", "low", "high", "n"), [("a", 0.5, 0.25, 0.65, 3), ("b", -0.125, None, None, 10)])


def test_numbers_are_rounded_right_aligned_and_intervals_joined():
    letters, rows = latex_rows(format_table(TABLE, "latex"))
    assert letters == "lrrr"
    assert rows == [
        ["class", "IoU", "interval", "n"],
        ["a", "0.500", "[0.250, 0.650]", "3"],
        ["b", "\N{MINUS SIGN}0.125", "--", "10"],
    ]
    assert format_table(TABLE, "markdown").splitlines()[1] == "| --- | ---: | ---: | ---: |"


def test_plus_minus_is_half_the_width():
    _, rows = latex_rows(format_table(TABLE, "latex", "plus-minus"))
    assert [row[2] for row in rows] == ["\N{PLUS-MINUS SIGN}", "\N{PLUS-MINUS SIGN}0.200", "--"]


@pytest.mark.parametrize("first", ["[a]", "*"])
def test_a_row_may_begin_with_what_a_line_break_would_swallow(first):
    text = format_table(Table("t", "", ("a",), [("x",), (first,)]), "latex")
    assert f"\n{{}}{first} " in text


def test_code_is_set_in_typewriter_and_short_rows_are_filled():
    assert r"\texttt{a\_b}" in format_table(Table("t", "", ("a",), [("see `a_b`",)]), "latex")
    assert format_table(Table("t", "", ("a", "b"), [("x",)]), "csv") == "a,b\nx,\n"
    assert format_table(Table("t", "", ("a", "b"), ()), "markdown") == "| a | b |\n| --- | --- |\n"
