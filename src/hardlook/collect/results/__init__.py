"""Results of a study: click tables, review outcomes, rating scores, quality reports and their export."""
