"""Reports: charts, tables and pages of a run, comparisons, leaderboards, exports, and the explorer."""
