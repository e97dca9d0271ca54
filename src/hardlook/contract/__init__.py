"""What a benchmark is, what a record and a scorecard are, and what a report shows: plain values and protocols."""
