"""The modes of a run in words: what each is, which show the same supports, whose queries are counted together."""

from __future__ import annotations

from hardlook.contract.scorecard import Scorecard
from hardlook.tasks.eligibility import has_common_supports

MODE_WORDS = {
    "iid": "iid: the support's context",
    "blind": "blind: any context",
    "ood": "ood: other contexts",
    "swapped": "swapped: another class's context",
    "shared": "shared: one context for all",
}
HOME = ("iid", "blind")


def same_tasks(scorecard: Scorecard) -> str:
    """What the modes' tasks have in common; "" where there is one mode.

    >>> from hardlook.contract.scorecard import Score
    >>> same_tasks(Scorecard("metacoco", "1", "", (Score("iid", 1, 9), Score("ood", 1, 9), Score("shared", 1, 9))))
    'Rows iid, ood are the same tasks: same classes, same supports, other queries. Tasks of shared have their own. '
    """
    modes = _modes(scorecard)
    alike = [mode for mode in modes if has_common_supports(mode, _blind_supports(scorecard))]
    words = ""
    if len(alike) > 1:
        rows = "Every row is of" if len(alike) == len(modes) else f"Rows {', '.join(alike)} are"
        words = f"{rows} the same tasks: same classes, same supports, other queries. "
    if len(modes) > 1 and "blind" in modes and "blind" not in alike:
        words += "Tasks of blind have supports of their own, drawn without regard to context. "
    if len(modes) > 1 and "shared" in modes:
        words += "Tasks of shared have their own. " if words else "Tasks of shared have classes of their own. "
    return words


def pooled_modes(scorecard: Scorecard) -> str:
    """Whose queries a cell of two contexts holds: tasks of one context for all, or of mixed supports, have none.

    >>> from hardlook.contract.scorecard import Score
    >>> pooled_modes(Scorecard("metacoco", "1", "", (Score("iid", 1, 9), Score("blind", 1, 9), Score("ood", 1, 9))))
    "Cells join the queries of iid, blind, ood; the diagonal, in the support's context, those of iid, blind. "
    """
    modes = [mode for mode in _modes(scorecard) if has_common_supports(mode, _blind_supports(scorecard))]
    home = [mode for mode in modes if mode in HOME]
    diagonal = f"; the diagonal, in the support's context, those of {', '.join(home)}" if home else ""
    return f"Cells {'join' if len(modes) > 1 else 'hold'} the queries of {', '.join(modes)}{diagonal}. "


def _modes(scorecard: Scorecard) -> list[str]:
    there = {score.name for score in scorecard.scores if not score.slice}
    return [mode for mode in MODE_WORDS if mode in there]


def _blind_supports(scorecard: Scorecard) -> str:
    return next((one.value for one in scorecard.readings if one.name == "blind-supports"), "ours")
