"""Time and peak memory of `hardlook run open-miou` with very many labels, all of them used.

Run `python benchmarks/open_miou_many_labels.py [LABELS] [IMAGES]`. Labels are nouns of WordNet with their synsets; true
maps are noise over all labels, a fifth of the predictions is another label. The run has all its intervals and measures.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hardlook.similarity.wordnet.nouns import load_nouns

SIDE = 512


def write_run(folder: Path, labels: int, images: int) -> list[str]:
    """Label maps and a table of labels under `folder`, and the arguments of the run."""
    rng, nouns = np.random.default_rng(0), load_nouns()
    nodes = rng.choice(len(nouns.graph), labels, replace=False)
    rows = "".join(f"{row},noun {row},{nouns.name(int(node))}\n" for row, node in enumerate(nodes))
    (folder / "labels.csv").write_text("id,name,synset\n" + rows)
    for name in ("gt", "pred"):
        (folder / name).mkdir()
    for image in range(images):
        truth = rng.integers(0, labels, (SIDE, SIDE))
        wrong = rng.random(truth.shape) < 0.2
        np.save(folder / "gt" / f"{image}.npy", truth)
        np.save(folder / "pred" / f"{image}.npy", np.where(wrong, rng.integers(0, labels, truth.shape), truth))
    given = {"gt": folder / "gt", "pred": folder / "pred", "labels": folder / "labels.csv", "ignore": 65535}
    return [f"--{name}={value}" for name, value in given.items()]


def main() -> None:
    labels, images = (int(value) for value in [*sys.argv[1:], "22000", "8"][:2])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = ["hardlook", "run", "open-miou", *write_run(folder, labels, images), f"--out={folder / 'run'}"]
        start = time.perf_counter()
        subprocess.run([str(Path(sys.executable).parent / command[0]), *command[1:]], check=True)
        took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"{labels:,} labels, all used, {images} images of {SIDE} x {SIDE}: {took:.0f} s, at most {peak:.2f} GB")


if __name__ == "__main__":
    main()
