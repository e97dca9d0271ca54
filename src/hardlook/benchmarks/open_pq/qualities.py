"""Single images: how well the segments of each were found and named, and what went wrong on it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_pq.options import OpenPqOptions, chosen_crowds
from hardlook.benchmarks.open_pq.records import matches_of, words_of_run
from hardlook.benchmarks.open_pq.scores import similarity_of_run
from hardlook.contract.records import Record
from hardlook.metrics.panoptic_quality import mean_quality, quality_sums_by_image

if TYPE_CHECKING:
    import polars as pl

# Sums of images at a time, images x labels: a bound on memory.
MOST_SUMS = 2**20


def judged_images(records: pl.DataFrame, options: OpenPqOptions) -> pl.DataFrame:
    """`unit`, `image-open-pq` and `image-pq`: PQ over the classes that occur on an image; NaN where none does."""
    import polars as pl

    words, crowds = words_of_run(records), chosen_crowds(options)
    matrices = {"image-open-pq": similarity_of_run(records, options), "image-pq": np.eye(len(words.names))}
    columns = {name: [np.zeros(0)] for name in matrices}
    for part in records.iter_slices(max(1, MOST_SUMS // len(words.names))):
        matches = matches_of(part, crowds)
        for name, matrix in matrices.items():
            columns[name].append(mean_quality(quality_sums_by_image(matches, matrix, words.things))[:, 0])
    return pl.DataFrame({"unit": records["unit"], **{name: np.concatenate(parts) for name, parts in columns.items()}})


def caption_of(record: Record) -> str:
    r"""How many segments were found and named, and the most frequent confusion of one image, in words.

    >>> record = {"names": "cat\ndog\nsky", "true": [0, 0, 2, 1, -1], "called": [0, 1, 2, -1, 1]}
    >>> caption_of(record | {"excused": [0, 0, 0, 0, 0]})
    '2 of 4 segments are found by name, 1 by another (cat called dog), 1 is missed, 1 is said where there is none.'
    """
    names = str(record["names"]).split("\n")
    pairs = list(zip(record["true"], record["called"], strict=True))
    segments = sum(true >= 0 for true, _ in pairs)
    named = sum(true == called for true, called in pairs)
    wrong = Counter(f"{names[true]} called {names[called]}" for true, called in pairs if -1 < true != called > -1)
    missed = sum(called < 0 for _, called in pairs)
    spare = sum(true < 0 and excused != 1 for (true, _), excused in zip(pairs, record["excused"], strict=True))
    parts = [f"{named} of {segments} segments are found by name"]
    if wrong:
        word, times = wrong.most_common(1)[0]
        most = f"{word}, {times} times" if times > 1 else word
        parts.append(f"{wrong.total()} by another ({most if len(wrong) == 1 else 'most: ' + most})")
    parts += [f"{missed} {'is' if missed == 1 else 'are'} missed"] if missed else []
    parts += [f"{spare} {'is' if spare == 1 else 'are'} said where there is none"] if spare else []
    return f"{', '.join(parts)}." if segments else f"No segment is true; {spare} are said."
