"""Tasks in which context decided: answered well in their supports' context and badly outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.contract.sections import Example, Gallery, Section

if TYPE_CHECKING:
    import polars as pl

SHOWN = 4
LEAVING = {
    "swapped": "Tasks that another class's context misled most",
    "ood": "Tasks that leaving the context cost most",
}


def context_galleries(records: pl.DataFrame, ways: int, shots: int) -> Section | None:
    """The tasks of these ways and shots that lose most from iid to swapped and to ood; None where none loses."""
    import polars as pl

    chosen = records.filter((pl.col("ways") == ways) & (pl.col("shots") == shots))
    home = chosen.filter(pl.col("mode") == "iid").select("index", home="correct", asked="queries")
    blocks = []
    for mode, title in LEAVING.items():
        both = chosen.filter(pl.col("mode") == mode).join(home, on="index")
        lost = both.with_columns(loss=pl.col("home") / pl.col("asked") - pl.col("correct") / pl.col("queries"))
        worst = lost.filter(pl.col("loss") > 0).sort("loss", "unit", descending=[True, False]).head(SHOWN)
        examples = [
            Example(
                row["unit"],
                f"{row['correct']} of {row['queries']} right, and {row['home']} of {row['asked']} in the supports' "
                "context.",
            )
            for row in worst.iter_rows(named=True)
        ]
        if examples:
            text = "A support of each class, then wrongly answered queries. The same supports served in both."
            blocks.append(Gallery(title, text, tuple(examples)))
    return Section("Where context decided", "", tuple(blocks)) if blocks else None
