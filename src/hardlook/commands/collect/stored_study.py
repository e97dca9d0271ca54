"""A study and its store, opened together: what status and export read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hardlook.extras import require

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store
    from hardlook.collect.study.folder import Study

StudyFolder = Annotated[Path, typer.Argument(help="The study's folder.", show_default=False)]
Database = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="HARDLOOK_DATABASE",
        help="postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE; the file in the study folder without it. "
        "In the environment the password is not on the command line.",
    ),
]


@contextmanager
def stored_study(folder: Path, database: str = "") -> Iterator[tuple[Study, Store]]:
    """The study of a folder and its answers; a database that belongs to other tasks is a `DataError`."""
    require("sqlalchemy", extra="web")
    from hardlook.collect.store.store import Store
    from hardlook.collect.study.folder import open_study

    study = open_study(folder)
    with Store.open(database or study.database) as store:
        # Also where nothing was ever served: there are then no answers, and that is told.
        store.prepare(study.items, study.settings.devices, study.fingerprint)
        yield study, store
