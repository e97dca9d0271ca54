"""A backup of a study: a folder like the study's own, with a consistent copy of its answers, that can be served."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.collect.study.folder import ANSWERS, CHECKS, MADE, SECRET, SETTINGS, TASKS, Study
from hardlook.collect.study.pictures import KINDS, PREVIOUS_MASKS
from hardlook.errors import DataError

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

_PICTURES = (*KINDS, PREVIOUS_MASKS)


def back_up_study(study: Study, store: Store, out: Path, *, pictures: bool = True) -> int:
    """Copy settings, tasks, secret, pictures and answers of a study to the new folder `out`; how many answers it has.

    The folder appears when it is complete. The study may be used at the same time, but its settings must not be edited.
    """
    if out.exists():
        raise DataError("there is something already", file=out, remedy="name a folder that does not exist yet")
    out.parent.mkdir(parents=True, exist_ok=True)
    # Readable by its owner alone, since it holds the secret.
    unfinished = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        store.copy(unfinished / ANSWERS)
        for name in (SETTINGS, TASKS, MADE, SECRET, CHECKS):
            if (study.path / name).is_file():
                shutil.copy2(study.path / name, unfinished / name)
        for name in _PICTURES if pictures else ():
            if (study.path / name).is_dir():
                shutil.copytree(study.path / name, unfinished / name)
        answers = _count_answers(unfinished / ANSWERS)
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return answers


def _count_answers(file: Path) -> int:
    from hardlook.collect.store.store import Store

    with Store.open(f"sqlite:///{file.resolve()}") as copied:
        return copied.answers().height
