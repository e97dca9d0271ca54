"""Does training on realistic clicks make a network robust to them: train, run, report. See `--help`."""
