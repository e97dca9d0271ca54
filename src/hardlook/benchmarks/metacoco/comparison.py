"""Whether an accuracy may stand beside the paper's."""

from __future__ import annotations

from hardlook.benchmarks.metacoco.options import MetaCocoOptions

PRINTED = {(5, 1), (5, 5), (10, 1), (10, 5)}


def comparable_words(mode: str, ways: int, shots: int, options: MetaCocoOptions) -> str:
    """One sentence; the paper prints accuracies of tasks drawn without regard to context, as we infer.

    >>> comparable_words("iid", 5, 1, MetaCocoOptions())
    'not comparable: the images are of the planted world'
    """
    if options.planted:
        return "not comparable: the images are of the planted world"
    if mode != "blind":
        return "not in the paper: it draws this comparison and prints no numbers"
    if (ways, shots) not in PRINTED:
        return "not comparable: the paper has 5 and 10 ways, 1 and 5 shots"
    if options.blind_supports != "paper":
        return "not comparable: supports are of one context a class; --blind-supports paper ignores context there too"
    return "comparable where the images are MetaCoCo's; that its tables are blind tasks is our inference"
