"""HTML that notebooks show inline: tables, figures and pages, each complete in itself.

A notebook has its own style, so colours and spacing are written into each element.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import OptionError
from hardlook.harness.sections import Chart, Table

if TYPE_CHECKING:
    from hardlook.report.figures import FigureFormat
    from hardlook.report.text_tables import TextFormat

_CELL = "padding:2px 10px;text-align:{align};vertical-align:top"
_PAGE_HEIGHT = 640


def draw_inline_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> str:
    """A plain HTML table; numbers are written to three decimals, their columns aligned to the right.

    >>> draw_inline_table(["score", "value"], [["mIoU", 0.51234]]).count("0.512")
    1
    """
    from hardlook.harness.rounding import format_fixed
    from hardlook.report.formatting import MISSING

    def is_number(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    def cell(value: Any, right: bool, tag: str = "td") -> str:
        missing = value is None or value == "" or value != value
        text = MISSING if missing else format_fixed(value, 3) if isinstance(value, float) else html.escape(str(value))
        return f'<{tag} style="{_CELL.format(align="right" if right else "left")}">{text}</{tag}>'

    aligned = [any(is_number(row[place]) for row in rows) for place in range(len(columns))]
    head = "".join(cell(name, right, "th") for name, right in zip(columns, aligned, strict=True))
    body = "".join("<tr>" + "".join(map(cell, row, aligned)) + "</tr>" for row in rows)
    caption = f"<p><b>{html.escape(title)}</b></p>" if title else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def embed_page(page: str, height: int = _PAGE_HEIGHT) -> str:
    """A whole page in a frame of its own, so that its style and the notebook's do not mix."""
    style = f"width:100%;height:{height}px;border:1px solid #ccc"
    return f'<iframe srcdoc="{html.escape(page, quote=True)}" style="{style}"></iframe>'


@dataclass(frozen=True)
class Page:
    """A page that was written to `path`; a notebook shows it in a frame."""

    path: Path
    text: str = field(repr=False)

    def _repr_html_(self) -> str:
        return embed_page(self.text)


@dataclass(frozen=True)
class Figure:
    """One chart of a report: shown inline, or saved as SVG, PDF, PNG or CSV by the suffix of the file."""

    name: str
    chart: Chart = field(repr=False)

    @property
    def svg(self) -> str:
        """The drawing; empty where there is nothing to draw."""
        from hardlook.report.charts.standalone import standalone_svg

        return standalone_svg(self.chart, filled=True)

    @property
    def frame(self) -> Any:
        """The numbers behind the chart, as a polars frame."""
        from hardlook.report.charts import tabulate

        return make_frame(tabulate(self.chart))

    def save(
        self,
        path: str | Path,
        *,
        format: FigureFormat | str | None = None,
        width: float = 165.0,
        dark: bool = False,
        ppi: float = 300.0,
    ) -> Path:
        """Write the figure in that format, by default the one of the file's suffix, `width` millimetres wide."""
        from hardlook.harness.runs.folder import refuse_part_of_run, write_atomically
        from hardlook.report.figures import render_figure

        file = Path(path)
        refuse_part_of_run(file, "the figure")
        chosen = choose_figure_format(format, file)
        write_atomically(file, render_figure(self.chart, chosen, width=width, dark=dark, ppi=ppi))
        return file

    def _repr_html_(self) -> str:
        drawn = self.svg.partition("?>")[2]
        return drawn or f"<p>{html.escape(self.chart.title)}: there is no value to draw.</p>"


def choose_figure_format(given: FigureFormat | str | None, file: Path) -> FigureFormat:
    """The format that is given, else that of the file's suffix.

    >>> choose_figure_format(None, Path("iou.PDF")).value, choose_figure_format("svg", Path("iou")).value
    ('pdf', 'svg')
    """
    from hardlook.report.figures import FigureFormat

    formats = list(FigureFormat)
    ending = file.suffix.lower().removeprefix(".")
    if given is None and ending not in formats:
        raise OptionError(f"--out {file}: its suffix is no format", remedy="give --format svg, pdf, png or csv")
    if given is not None and given not in formats:
        raise OptionError(f"--format {given}: there is no such format", remedy=f"one of {', '.join(formats)}")
    if given is not None and ending in formats and ending != given:
        raise OptionError(f"--format {given} and --out {file} contradict each other", remedy="omit --format")
    return FigureFormat(given or ending)


_TABLE_SUFFIXES: dict[str, TextFormat] = {".tex": "latex", ".md": "markdown", ".csv": "csv"}


def choose_table_format(given: TextFormat | None, file: str | Path | None) -> TextFormat:
    """The format that is given, else that of the file's suffix, else Markdown.

    >>> choose_table_format(None, "scores.tex"), choose_table_format(None, None)
    ('latex', 'markdown')
    """
    formats = list(_TABLE_SUFFIXES.values())
    if given is not None and given not in formats:
        raise OptionError(f"--format {given}: there is no such format", remedy=f"one of {', '.join(formats)}")
    named = None if file is None else _TABLE_SUFFIXES.get(Path(file).suffix.lower())
    if given is not None and named is not None and given != named:
        raise OptionError(f"--format {given} and --out {file} contradict each other", remedy="omit --format")
    return given or named or "markdown"


def make_frame(table: Table) -> Any:
    """A table of a report as a polars frame; columns of the same name are numbered."""
    import polars as pl

    from hardlook.report.html_tables import pad_rows

    names: list[str] = []
    for name in table.columns:
        count = sum(one == name or one.startswith(f"{name} (") for one in names)
        names.append(f"{name} ({count + 1})" if count else name)
    return pl.DataFrame(
        pad_rows(table.rows, len(names)), schema=names, orient="row", strict=False, infer_schema_length=None
    )
