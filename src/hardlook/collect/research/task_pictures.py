"""A task's picture as bytes, whole or small; the file is named by the task, never by a request."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.collect.research.refusals import Refused
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.tasks import ClickTask
from hardlook.errors import DataError

LONGEST, MOST_BYTES = 320, 32 * 2**20
_QUALITY = 80
_MEDIA = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"RIFF": "image/webp",
}


class TaskPictures:
    """Pictures of a study's tasks; small ones are kept, up to 32 MiB of them."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def whole(self, task: str) -> tuple[bytes, str]:
        """The picture's file and its media type."""
        content = self._file(task).read_bytes()
        media = next((media for start, media in _MEDIA.items() if content.startswith(start)), "")
        if not media:
            raise Refused("The picture of this task is in no known format.", 404)
        return content, media

    def small(self, task: str) -> bytes:
        """A JPEG of at most 320 pixels a side."""
        with self._lock:
            if task in self._kept:
                self._kept.move_to_end(task)
                return self._kept[task]
        content = _shrunk(self._file(task))
        with self._lock:
            self._kept[task] = content
            while sum(map(len, self._kept.values())) > MOST_BYTES:
                self._kept.popitem(last=False)
        return content

    def mask(self, task: str) -> NDArray[np.bool_] | None:
        """The region (H, W) that a click should hit; None where there is none, or its file is gone or broken."""
        known = self.study.by_id[task]
        if not isinstance(known, ClickTask):
            return None
        try:
            return read_mask(self.study.file(known.mask), (known.width, known.height))
        except (DataError, OSError):
            return None

    def _file(self, task: str) -> Path:
        known = self.study.by_id.get(task)
        if known is None or not known.image:
            raise Refused("There is no such picture.", 404)
        path = self.study.file(known.image)
        if not path.is_file():
            raise Refused("The picture of this task is gone from the study's folder.", 404)
        return path


def _shrunk(path: Path) -> bytes:
    import cv2

    encoded = np.frombuffer(path.read_bytes(), np.uint8)
    pixels = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if encoded.size else None
    if pixels is None:
        raise Refused("The picture of this task cannot be read.", 404)
    height, width = pixels.shape[:2]
    factor = min(1.0, LONGEST / max(height, width))
    size = max(1, round(width * factor)), max(1, round(height * factor))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return jpeg.tobytes()
