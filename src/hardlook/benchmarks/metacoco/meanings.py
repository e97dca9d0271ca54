"""The scores of MetaCoCo in words."""

from __future__ import annotations

from hardlook.contract.benchmark import ScoreMeaning

SCORES = (
    ScoreMeaning("gap", "IID-OOD gap", "accuracy lost when queries leave their support's context", False, True),
    ScoreMeaning("iid", "IID accuracy", "queries in the context of their class's supports", headline=True),
    ScoreMeaning("ood", "OOD accuracy", "queries in other contexts than their class's supports", headline=True),
    ScoreMeaning(
        "swapped", "swapped accuracy", "queries in the context in which another class was shown", headline=True
    ),
    ScoreMeaning("blind", "blind accuracy", "queries in any context", headline=True),
    ScoreMeaning("shared", "shared accuracy", "all classes of a task in one context", headline=True),
    ScoreMeaning("swapped-gap", "IID-swapped gap", "accuracy lost when contexts are swapped between classes", False),
    ScoreMeaning("blind-gap", "IID-blind gap", "accuracy lost when context is ignored in the queries", False),
    ScoreMeaning(
        "attraction",
        "context-attracted errors",
        "share of errors whose answered class was shown in the query's context",
        False,
    ),
    ScoreMeaning(
        "attraction-chance",
        "attraction by chance",
        "that share if errors fell on all wrong classes alike: a yardstick, no higher or lower one is better",
        directed=False,
    ),
    ScoreMeaning("excess-attraction", "attraction beyond chance", "context-attracted errors less chance", False),
    ScoreMeaning("accuracy", "accuracy", "share of queries answered rightly, of a concept or a pair of contexts"),
)
