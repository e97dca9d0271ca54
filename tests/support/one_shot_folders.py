"""The planted world on disk with pair lists beside it, for tests of benchmarks on one-shot pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from hardlook.data.toss_pairs import Pair, locate_tier_list, write_pairs
from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.toss.options import TossOptions
from hardlook.toss.planted_pairs import list_planted_pairs
from hardlook.world.layouts import write_world

SCENES = 24

FIXED = Path("fixedsplits") / "pascal5i"


@dataclass(frozen=True)
class OneShotFolder:
    """A devkit of planted scenes, and lists of their pairs: tiers 1 and 2 and the fixed lists of two folds."""

    voc: Path
    pairs: Path

    @property
    def data(self):
        return {"voc": self.voc, "pairs": self.pairs}

    def image(self, name):
        return self.voc / "JPEGImages" / f"{name}.png"

    def mask(self, name):
        return self.voc / "SegmentationClass" / f"{name}.png"

    @property
    def some_query(self):
        """The image of the first query of the first fixed list."""
        return self.listed(FIXED / "split0_test.txt")[0][0].partition("_")[2]

    def listed(self, place):
        """The pairs of a list, as rows of tokens."""
        return [line.split()[:2] for line in (self.pairs / place).read_text().splitlines()]


def devkit_token(token):
    """`3_0007`, the third concept in scene 7, as its devkit calls it."""
    number, _, scene = token.partition("_")
    return f"{number}_2026_{int(scene) + 1:06d}"


def write_one_shot_folder(folder, *, scenes=SCENES, border=0, folds=(0, 1)):
    """Both folders under `folder`."""
    written = OneShotFolder(write_world(folder / "voc", "voc", count=scenes, border=border), folder / "toss")
    options = TossOptions(scenes=scenes)
    for fixed in (False, True):
        for _, pairs in list_planted_pairs(options, (1, 2), folds, fixed=fixed):
            first = pairs[0]
            rows = [replace(pair, query=devkit_token(pair.query), support=devkit_token(pair.support)) for pair in pairs]
            if fixed:
                path = written.pairs / FIXED / f"split{first.fold}_test.txt"
            else:
                path = locate_tier_list(written.pairs, first.tier, first.fold, first.split).path
            write_pairs(path, rows)
    return written


def write_general_folder(folder, pairs, *, scenes=SCENES):
    """A planted FSS-1000 and tier 3 with these pairs of tokens `X_class_n`; the data as options take it."""
    rows = [Pair(query, support, 3, -1, line=line) for line, (query, support) in enumerate(pairs, 1)]
    write_pairs(locate_tier_list(folder / "toss", 3).path, rows)
    return {"fss": write_world(folder / "fss", "fss", count=scenes), "pairs": folder / "toss"}


def one_shot_run(out, data=None, *, model="planted-one-shot", args=None, benchmark="toss", engine="inline", **given):
    """Launch a benchmark on pairs; `batch_size`, `max_failures`, `on_error` and options of the benchmark."""
    behaviour = {key: given.pop(key) for key in ("max_failures", "on_error") if key in given}
    batch_size = given.pop("batch_size", 16)
    return launch(
        benchmark,
        out=out,
        model=model,
        model_args=args or {},
        given={"resamples": 0, **({"data": data} if data else {}), **given},
        batch_size=batch_size,
        settings=RunSettings(engine=EngineOptions(engine), **behaviour),
    )


def whole_records(out):
    """Every row of a run with all columns, sorted."""
    parts = sorted(RunFolder(out).records_path.glob("part-*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts]).sort("unit")
