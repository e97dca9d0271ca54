"""The harness: what a benchmark is, how a run is planned, executed, stored and scored."""
