"""Files that are there whole or not at all, so that a stopped command can go on.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "deep" / "a.txt"
>>> write_atomically(path, b"all of it")
>>> path.read_bytes(), len(list(path.parent.iterdir()))
(b'all of it', 1)
"""

from __future__ import annotations

import uuid
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the place and move there at once; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{uuid.uuid4().hex}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
