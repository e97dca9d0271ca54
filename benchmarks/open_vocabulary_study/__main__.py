"""`python -m open_vocabulary_study train|run|report`, from the folder `benchmarks`."""

from open_vocabulary_study.commands import main

main()
