"""The suite behind `hardlook check ROLE MODEL`, which tries whether a model keeps its role's contract.

>>> from hardlook.models.conformance import check_named
>>> [finding.line() for finding in check_named("planted-segmenter", "semantic-segmenter") if not finding.passed]
[]
"""

from __future__ import annotations

from hardlook.models.conformance.contracts import Finding
from hardlook.models.conformance.suite import check_model, check_named

__all__ = ["Finding", "check_model", "check_named"]
