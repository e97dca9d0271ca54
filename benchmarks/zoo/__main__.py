"""Train and test the few-shot zoo, in three steps; a fourth packs the weights.

Each step has its own help: `python benchmarks/zoo prepare --help`, `run --help` ....
"""

import argparse
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from zoo.commands import main  # noqa: E402

if __name__ == "__main__":
    main(argparse.ArgumentParser(prog="zoo", description=__doc__))
