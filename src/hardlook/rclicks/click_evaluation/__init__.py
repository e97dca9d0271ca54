"""Click models evaluated against people's clicks: scores per stem, rankings, tables and the page."""
