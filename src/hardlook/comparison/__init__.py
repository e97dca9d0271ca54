"""Models compared on the same units: how large the differences are, whether they are more than luck, and where.

`compare` takes runs that are read back (`hardlook.runs.scoring.score_run`) and gives a `Comparison`; `sentence` says a
difference in words. docs/compare.md is the page to read first.
"""

from hardlook.comparison.between_runs import Comparison, compare
from hardlook.comparison.differences import Difference, Verdict
from hardlook.comparison.verdicts import meaning_of, sentence

__all__ = ["Comparison", "Difference", "Verdict", "compare", "meaning_of", "sentence"]
