"""Names for the blocks of a document: those of `hardlook figure` and `hardlook table`, and names for galleries."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.sections import Gallery, Section
from hardlook.report.names import name_of, named_blocks


def name_blocks(sections: Sequence[Section]) -> list[list[str]]:
    """A name for each block of each section, each of them once.

    >>> from hardlook.contract.sections import Table
    >>> iou = Table("IoU of each class", "", (), ())
    >>> name_blocks([Section("a", "", (iou, Gallery("Worst", "", ()))), Section("b", "", (iou,))])
    [['iou-of-each-class', 'worst'], ['iou-of-each-class-2']]
    """
    taken = dict.fromkeys(named_blocks(sections))
    # They come in the order of the blocks that have one.
    in_order = iter(list(taken))

    def name(block: object) -> str:
        if not isinstance(block, Gallery):
            return next(in_order)
        free, number = name_of(block.title), 1
        while free in taken:
            number += 1
            free = f"{name_of(block.title)}-{number}"
        taken[free] = None
        return free

    return [[name(block) for block in section.blocks] for section in sections]
