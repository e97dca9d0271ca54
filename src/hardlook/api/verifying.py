"""`hl.verify`: whether every file of a run is what was written, and the repair of those that are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hardlook.api.inline import draw_inline_table
from hardlook.api.runs import Run
from hardlook.cloud.addresses import format_path
from hardlook.cloud.run_folders import open_run, refresh
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.progress import make_progress
from hardlook.harness.runs.verification import Problem, Verification, repair_run, verify_run


@dataclass(frozen=True)
class VerifiedRun:
    """What was found in a run folder: its `state` now, and the problems that were `repaired`."""

    state: Verification
    repaired: tuple[Problem, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is damaged any more."""
        return not self.state.problems

    @property
    def document(self) -> dict[str, Any]:
        """What was found, as JSON values."""
        return {
            **asdict(self.state),
            "folder": format_path(self.state.folder),
            "problems": _list_problems(self.state.problems),
            "repaired": _list_problems(self.repaired),
        }


def _list_problems(problems: Sequence[Problem]) -> list[dict[str, str]]:
    return [{"file": format_path(one.file), "what": one.what} for one in problems]


class VerifiedRuns(Sequence[VerifiedRun]):
    """The result of `hl.verify`, one entry per run; `passed` where no file is damaged."""

    def __init__(self, runs: Sequence[VerifiedRun]) -> None:
        self.runs = tuple(runs)

    def __getitem__(self, place: Any) -> Any:
        return self.runs[place]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def passed(self) -> bool:
        """Whether no file of any run is damaged."""
        return all(run.passed for run in self.runs)

    def _list_rows(self) -> list[tuple[str, int, str]]:
        return [
            (format_path(run.state.folder), run.state.files, "; ".join(one.what for one in run.state.problems))
            for run in self.runs
        ]

    def __repr__(self) -> str:
        return "\n".join(
            f"{folder}: {files} files checked, {what or 'no damage'}" for folder, files, what in self._list_rows()
        )

    def _repr_html_(self) -> str:
        return draw_inline_table(("run", "files", "damage"), self._list_rows())


def verify(*runs: Run | str | Path, repair: bool = False, progress: bool = True) -> VerifiedRuns:
    """Check every file of runs for damage; with `repair`, evaluate again what was lost.

    Checking changes nothing and needs no model; repairing needs the model and the data.

    Args:
        *runs: Runs or their folders.
        repair: Set damaged files aside and evaluate the units that have no record any more.
        progress: Whether a repair shows a progress bar.
    """
    folders = dict.fromkeys(open_run(one.folder if isinstance(one, Run) else one, thorough=True) for one in runs)
    return VerifiedRuns([verify_folder(folder, repair=repair, progress=progress) for folder in folders])


def verify_folder(
    path: Path,
    *,
    repair: bool = False,
    progress: bool = True,
    show_damage: Callable[[Verification], None] | None = None,
) -> VerifiedRun:
    """Check one run folder, and repair it where asked; `show_damage` is called before a repair begins."""
    folder = RunFolder(path)
    if not folder.exists():
        folder.read_manifest()  # Raises the error that says so.
    state = verify_run(folder)
    if not repair or not state.problems:
        return VerifiedRun(state)
    if show_damage is not None:
        show_damage(state)
    repair_run(folder, make_progress if progress else None)
    refresh(path, thorough=True)
    return VerifiedRun(verify_run(folder), state.problems)
