"""`pack`: finished trainings as checkpoint folders in half precision, to be shipped or sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hardlook.errors import DataError
from hardlook.training.checkpoint import read_card, read_weights, write_checkpoint


def pack(trainings: Sequence[Path], out: Path) -> list[Path]:
    """Write each training to a folder of its name in `out`, matrices as float16, without history and page.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     card = {"selected": {"step": 1}, "finished": True}
    ...     write_checkpoint(Path(folder) / "one", {"weight": torch.ones(2, 2)}, card)
    ...     [packed] = pack([Path(folder) / "one"], Path(folder) / "packed")
    ...     packed.name, read_weights(packed)["weight"].dtype
    ('one', torch.float16)
    """
    packed = []
    for folder in trainings:
        card = read_card(folder)
        if not card.get("finished"):
            raise DataError("the training is not finished", file=folder, remedy="`run` goes on with it")
        card["half"] = True
        write_checkpoint(out / folder.name, read_weights(folder), card, half=True)
        packed.append(out / folder.name)
    return packed
