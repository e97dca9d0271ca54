"""`python -m robust_clicks train|run|report`, from the folder `benchmarks`."""

from robust_clicks.commands import main

main()
