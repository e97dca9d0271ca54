"""Which concepts can take part in tasks, in every mode of a run, and why the others cannot.

Classes and supports of a task are the same in all modes, so a concept takes part when some context of it can be the
support context in every mode at once. Images are counted by content: duplicates count once.

>>> from hardlook.data.concept_context import build_image_table
>>> rows = [(concept, context) for concept in ("cat", "dog") for context in ("grass", "snow") for _ in range(3)]
>>> concepts, contexts = zip(*rows, ("cow", "snow"))
>>> table = build_image_table(concepts, contexts, [str(number) for number in range(13)])
>>> found = find_eligible_classes(table, ("iid", "ood"), ways=2, shots=1, queries=2)
>>> found.classes.tolist(), found.left_out
([0, 2], (('iid', 'cow', 'no context holds 3 images (the fullest holds 1)'), ('ood', 'cow', 'one context only')))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context import ImageTable
from hardlook.errors import OptionError
from hardlook.metacoco.tasks.images import BLIND_SUPPORTS, MODES, ImagePools, Numbers, build_image_pools

Cells = NDArray[np.bool_]

_ONE_CONTEXT = "one context only"
_NOT_THERE = "none of the support contexts that were asked for serves"
_NOT_TOGETHER = "no one support context serves all modes together, or those that would are left out"


@dataclass(frozen=True, eq=False)
class Eligibility:
    """The classes and contexts that tasks are drawn from.

    `classes` are the concepts that take part in every mode, ascending; `left_out` has (mode, concept, why) of the
    others. `support_contexts` (concepts, contexts) marks where the supports that modes have in common may come from,
    `shared_contexts` where those of the mode `shared` may.
    """

    classes: Numbers
    left_out: tuple[tuple[str, str, str], ...]
    modes: tuple[str, ...]
    ways: int
    shots: int
    queries: int
    blind_supports: str
    support_contexts: Cells = field(repr=False)
    shared_contexts: Cells = field(repr=False)
    pools: ImagePools = field(repr=False)

    @property
    def common_modes(self) -> tuple[str, ...]:
        """The modes whose supports are one and the same draw: all but `shared` and the paper's `blind`."""
        return tuple(mode for mode in self.modes if has_common_supports(mode, self.blind_supports))

    def require(self) -> None:
        """Raise an `OptionError` with the counts when there are fewer classes than a task has."""
        if len(self.classes) >= self.ways:
            return
        reasons = [f"{concept}: {why} ({mode})" for mode, concept, why in self.left_out]
        examples = "; ".join(reasons[:3]) + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "")
        remedy = "ask for fewer ways, shots, queries or modes, or give more images"
        if any(why == _ONE_CONTEXT for _, _, why in self.left_out):
            remedy += "; --modes blind needs no second context"
        raise OptionError(
            f"{len(self.classes)} of {self.pools.concepts} classes can form {self.ways}-way {self.shots}-shot tasks "
            f"with {self.queries} queries in the modes {', '.join(self.modes)}; {self.ways} are needed"
            + (f". Left out: {examples}" if reasons else ""),
            remedy=remedy,
        )


def has_common_supports(mode: str, blind_supports: str) -> bool:
    """Whether a mode's supports are those that most modes have in common."""
    return mode != "shared" and (mode != "blind" or blind_supports == "ours")


def find_eligible_classes(
    table: ImageTable,
    modes: Sequence[str],
    ways: int,
    shots: int,
    queries: int,
    *,
    blind_supports: str = "ours",
    support_contexts: Sequence[str] = (),
) -> Eligibility:
    """The concepts that can take part in N-way K-shot tasks with `queries` queries per class in all of `modes`.

    `support_contexts` names the contexts that supports may come from; none means any. Classes that cannot take part are
    listed by mode; one that can in each mode alone, but not in all together, is listed under the mode "all". Too few
    classes are not an error here, but in `Eligibility.require`.
    """
    _check_arguments(modes, ways, shots, queries, blind_supports)
    pools = build_image_pools(table)
    shape: dict[str, Any] = {"ways": ways, "shots": shots, "queries": queries, "blind_supports": blind_supports}
    serving = {mode: find_support_cells(pools, mode, **shape) for mode in modes}
    possible = {mode: np.asarray(cells.any(1)) for mode, cells in serving.items()}
    if support_contexts:
        allowed = _mark_allowed(table, support_contexts)
        serving = {mode: cells & allowed for mode, cells in serving.items()}
    common = [mode for mode in modes if has_common_supports(mode, blind_supports)]
    support = np.logical_and.reduce([serving[mode] for mode in common]) if common else np.zeros_like(serving[modes[0]])
    shared = serving.get("shared", np.zeros_like(support))
    alive = alone = np.logical_and.reduce([cells.any(1) for cells in serving.values()])
    queryable = pools.cell_sizes() >= queries
    while True:
        before = support.sum(), shared.sum(), alive.sum()
        support, shared = support & alive[:, None], shared & alive[:, None]
        # Swapped and shared need partners, and partners may drop out: repeat until none does.
        if "swapped" in modes:
            support = find_swappable(support, queryable)
        if "shared" in modes:
            shared = _keep_common_contexts(shared, ways)
            alive = alive & shared.any(1)
        if common:
            alive = alive & support.any(1)
        if before == (support.sum(), shared.sum(), alive.sum()):
            break
    left_out = [
        (
            mode,
            table.concepts[concept],
            _NOT_THERE if possible[mode][concept] else _describe_exclusion(pools, mode, int(concept), **shape),
        )
        for mode in modes
        for concept in np.flatnonzero(~serving[mode].any(1))
    ]
    left_out += [("all", table.concepts[concept], _NOT_TOGETHER) for concept in np.flatnonzero(alone & ~alive)]
    classes, reasons = np.flatnonzero(alive), tuple(left_out)
    return Eligibility(
        classes, reasons, tuple(modes), **shape, support_contexts=support, shared_contexts=shared, pools=pools
    )


def find_support_cells(
    pools: ImagePools, mode: str, *, ways: int, shots: int, queries: int, blind_supports: str
) -> Cells:
    """(concepts, contexts) where the supports of a mode may come from, as if every class took part.

    >>> from hardlook.data.concept_context import build_image_table
    >>> pools = build_image_pools(build_image_table(["cat"] * 5, ["grass"] * 3 + ["snow"] * 2, list("abcde")))
    >>> for mode in ("iid", "ood"):
    ...     find_support_cells(pools, mode, ways=1, shots=1, queries=2, blind_supports="ours").tolist()
    [[True, False]]
    [[True, True]]
    """
    held = pools.cell_sizes()
    if mode == "iid":
        return held >= shots + queries
    if mode == "ood":
        return (held >= shots) & (pools.outside_sizes() >= queries)
    if mode == "blind":
        enough = pools.concept_sizes() >= shots + queries
        return (held >= (shots if blind_supports == "ours" else 1)) & enough[:, None]
    if mode == "swapped":
        return find_swappable(held >= shots, held >= queries)
    return _keep_common_contexts(held >= shots + queries, ways)


def find_swappable(support: Cells, queryable: Cells) -> Cells:
    """Support cells whose concept can have queries in a context that another concept's support may have.

    `support` and `queryable` (concepts, contexts) mark where supports and queries may come from.

    >>> cells = np.array([[True, False], [True, True]])
    >>> find_swappable(cells, cells).tolist()
    [[False, False], [False, True]]
    """
    offered_by_others = support.sum(0) - support > 0
    askable = queryable & offered_by_others
    elsewhere = askable.sum(1, keepdims=True) - askable > 0
    return np.asarray(support & elsewhere)


def _keep_common_contexts(cells: Cells, ways: int) -> Cells:
    """Those of the cells whose context has at least `ways` of them."""
    return np.asarray(cells & (cells.sum(0) >= ways))


def _describe_exclusion(
    pools: ImagePools, mode: str, concept: int, *, ways: int, shots: int, queries: int, blind_supports: str
) -> str:
    """Why a concept has no support cell in a mode, with counts."""
    held = pools.cell_sizes()[concept]
    images, fullest = int(pools.concept_sizes()[concept]), int(held.max(initial=0))
    none_holds = f"no context holds {{}} images (the fullest holds {fullest})"
    if mode == "blind" and images < shots + queries:
        return f"{images} images, {shots + queries} are needed"
    if mode == "iid":
        return none_holds.format(shots + queries)
    if mode == "shared":
        return f"no context in which {ways} classes have {shots + queries} images each"
    if mode in ("ood", "swapped") and (held > 0).sum() == 1:
        return _ONE_CONTEXT
    if fullest < shots:
        return none_holds.format(shots)
    if mode == "ood":
        outside = int(pools.outside_sizes()[concept][held >= shots].max())
        return f"{outside} images outside its support context at most, {queries} are needed"
    return f"no context where another class has {shots} images holds {queries} of its own"


def _mark_allowed(table: ImageTable, names: Sequence[str]) -> NDArray[np.bool_]:
    """(contexts,) which contexts are among the names."""
    unknown = [name for name in names if name not in table.contexts]
    if unknown:
        known = ", ".join(table.contexts[:10])
        raise OptionError(f"there is no context {unknown[0]!r} to take supports from", remedy=f"there are {known}")
    return np.isin(np.array(table.contexts), list(names))


def _check_arguments(modes: Sequence[str], ways: int, shots: int, queries: int, blind_supports: str) -> None:
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes or len(set(modes)) < len(modes):
        what = f"there is no mode {unknown[0]!r}" if unknown else f"expected modes, each once, got {list(modes)}"
        raise OptionError(what, remedy=f"the modes are {', '.join(MODES)}")
    if blind_supports not in BLIND_SUPPORTS:
        raise OptionError(f"blind supports cannot be {blind_supports!r}", remedy=f"one of {', '.join(BLIND_SUPPORTS)}")
    fewest = 2 if "swapped" in modes else 1
    if ways < fewest or shots < 1 or queries < 1:
        raise OptionError(
            f"tasks of {ways} ways, {shots} shots and {queries} queries are not possible",
            remedy=f"at least {fewest} ways, 1 shot and 1 query" + (" (swapped swaps contexts)" if fewest == 2 else ""),
        )
