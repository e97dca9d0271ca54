"""TOSS: pairs a second beside a loop that encodes both images of every pair, and the time to score 300,000 records.

Run `python benchmarks/toss.py PAIRS VOC`, where PAIRS is a folder of `hardlook build toss` and VOC the devkit it was
built from. 20,000 pairs of tier 1 go through `hardlook run toss` with prototype matching on EfficientNet-Lite0,
records and scores on disk included. The loop is what scripts do: read both files, encode both images, match, count; it
does some pairs of the same list, with the same model and encoder, and keeps nothing. One thread and one process each;
processor time, so that other work on the machine does not count.
"""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from hardlook.data.class_masks import open_class_mask_folders
from hardlook.data.toss_pairs import Pair, list_pair_files, locate_tier_list, read_pairs, write_pairs
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.launch import launch
from hardlook.models.registry import build
from hardlook.models.roles import Support
from hardlook.threads import pin_threads, set_thread_variables
from hardlook.toss.options import TossOptions

PAIRS, LOOP_PAIRS, TARGET = 20_000, 60, 8.0
RECORDS, SCORING_TARGET = 300_000, 1.0


def main() -> None:
    set_thread_variables(1)
    pairs, voc = Path(sys.argv[1]), Path(sys.argv[2])
    for model in ("prototype", "nearest"):
        with tempfile.TemporaryDirectory() as folder:
            chosen = write_share(pairs, Path(folder) / "pairs")
            ours = run_seconds(model, Path(folder), voc)
        loop = loop_seconds(model, chosen, voc)
        ratio = (loop / LOOP_PAIRS) / (ours / len(chosen))
        verdict = "met" if ratio >= TARGET else "MISSED"
        print(f"{model}: {len(chosen):,} pairs in {ours:.1f} s, {len(chosen) / ours:,.0f} a second", end="; ")
        print(f"loop {LOOP_PAIRS / loop:.1f} a second; ratio {ratio:.0f} (target {TARGET:g}x: {verdict})", flush=True)
    for resamples in (0, 2000):
        seconds = scoring_seconds(resamples)
        verdict = (
            "" if resamples else f" (target {SCORING_TARGET:g} s: {'met' if seconds <= SCORING_TARGET else 'MISSED'})"
        )
        print(f"scoring {RECORDS:,} records, {resamples} resamples: {seconds:.2f} s{verdict}")


def write_share(source: Path, folder: Path) -> list[Pair]:
    """Every n-th pair of tier 1, so that 20,000 are left, as a folder of lists; returns the pairs."""
    lists = [read_pairs(file) for file in list_pair_files(source) if file.tier == 1]
    every = [pair for listed in lists for pair in listed.pairs]
    kept = [every[place] for place in np.linspace(0, len(every) - 1, min(PAIRS, len(every))).astype(int)]
    for fold in range(4):
        for split in ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal"):
            mine = [replace(pair, line=0) for pair in kept if (pair.fold, pair.split) == (fold, split)]
            write_pairs(locate_tier_list(folder, 1, fold, split).path, mine)
    return kept


def run_seconds(model: str, folder: Path, voc: Path) -> float:
    """A whole run, one worker: listing, reading, encoding, matching, counting, records, scores."""
    given = {"data": {"pairs": folder / "pairs", "voc": voc}, "tiers": [1]}
    start = time.process_time()
    launch("toss", out=folder / "run", model=model, given=given)
    return time.process_time() - start


def loop_seconds(model: str, pairs: list[Pair], voc: Path) -> float:
    """The plain loop on some of the pairs."""
    source = open_class_mask_folders({"voc": voc})
    segmenter = build(model, role="one-shot-segmenter", args={"memory": "0"})
    pin_threads(1)
    some = [pairs[place] for place in np.linspace(0, len(pairs) - 1, LOOP_PAIRS + 1).astype(int)]
    total = np.zeros(2, np.int64)
    start = 0.0
    for number, pair in enumerate(some):
        if number == 1:  # the first pair warms everything up
            start = time.process_time()
        truth, shown = source.read_mask(pair.query), source.read_mask(pair.support)
        support = Support(source.read_image(pair.support), shown.mask)
        [mask] = segmenter.segment_queries([source.read_image(pair.query)], [[support]])
        total += (mask & truth.mask).sum(), ((mask | truth.mask) & ~truth.void).sum()
    return time.process_time() - start


def scoring_seconds(resamples: int) -> float:
    """Processor time of the scores of tier 1 at its published size, from records in memory."""
    rng = np.random.default_rng(0)
    # As in the published lists: 14,830 masks of some 11,000 images, each of one class and split.
    masks = 14_830
    image, number, split = (rng.integers(0, most, masks) for most in (11_000, 20, 4))
    query = rng.integers(0, masks, RECORDS)
    truth, predicted = rng.integers(100, 40_000, (2, RECORDS))
    splits = np.array(["easy_sal", "easy_nsal", "hard_sal", "hard_nsal"])
    records = pl.DataFrame(
        {
            "unit": [f"unit-{one:06d}" for one in range(RECORDS)],
            "tier": np.ones(RECORDS, np.int64),
            "fold": number[query] // 5,
            "split": splits[split[query]],
            "class": [f"class-{one}" for one in number[query]],
            "shots": np.ones(RECORDS, np.int64),
            "mixed": np.zeros(RECORDS, bool),
            "query": [f"image-{one}" for one in image[query]],
            "intersection": np.minimum(truth, predicted) // 2,
            "predicted": predicted,
            "truth": truth,
            "predicted_void": np.zeros(RECORDS, np.int64),
            "void": np.zeros(RECORDS, np.int64),
            "pixels": np.full(RECORDS, 187_500),
            "listing": ["published"] * RECORDS,
        }
    )
    benchmark = find_benchmark("toss")
    start = time.process_time()
    benchmark.score(records, TossOptions(resamples=resamples))
    return time.process_time() - start


if __name__ == "__main__":
    main()
