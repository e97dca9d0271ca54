"""`python -m toss_study train|run|report`, from the folder `benchmarks`."""

from toss_study.commands import main

main()
