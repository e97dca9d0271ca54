"""What the TOSS paper prints of its bias studies, in the terms of the scores of `hardlook bias`.

>>> [row.values["non-salient"] for row in SALIENCY_ROWS if "non-salient" in row.values]
[0.383, 0.332, 0.382]
"""

from __future__ import annotations

from collections.abc import Iterator

from hardlook.benchmarks.toss.published_biases import REMEDIES, SALIENCE, SUPPORTS
from hardlook.benchmarks.toss.published_rows import NETWORKS, folds_and_mean
from hardlook.contract.published import PublishedResult

_NOTE = f"only the pattern can be compared: the pairs behind the values are not published; {NETWORKS}"
# Rows of Table 2A under the names of our conditions.
_CONDITIONS = {
    "correct": "correct",
    "other class": "other-class",
    "null mask": "no-mask",
    "null image": "no-image",
    "other class, null mask": "other-class-no-mask",
}


def _supports() -> Iterator[PublishedResult]:
    means = {name: SUPPORTS[key].mean for key, name in _CONDITIONS.items()}
    yield PublishedResult("Baseline", "Table 2A", means, _NOTE)
    for key, name in _CONDITIONS.items():
        for fold, value in enumerate(SUPPORTS[key].folds):
            where = {"support": name, "fold": str(fold)}
            yield PublishedResult("Baseline", "Table 2A", {"miou": value}, _NOTE, where)


def _saliency() -> Iterator[PublishedResult]:
    for method, halves in SALIENCE.items():
        values = {"salient": halves.salient, "non-salient": halves.non_salient}
        yield PublishedResult(method, "Table 2B", values, _NOTE)
    for method, rows in REMEDIES.items():
        both = zip(folds_and_mean(rows["none, table 3"]), folds_and_mean(rows["sssi"]), strict=True)
        for (where, base), (_, sssi) in both:
            yield PublishedResult(method, "Table 3", {"base": base, "sssi": sssi}, _NOTE, where)


SUPPORT_ROWS = tuple(_supports())
SALIENCY_ROWS = tuple(_saliency())
