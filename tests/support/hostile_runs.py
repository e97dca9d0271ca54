"""A run whose labels, files, folder, model and settings are all written to break out of a page."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np

from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch

SCRIPT = "<script>window.hacked=1</script>"

IMAGE = "<img src=x onerror=window.hacked=1>"

QUOTE = '" autofocus onfocus=window.hacked=1 x="'

STEMS = (
    IMAGE,
    "' onmouseover='window.hacked=1",
    "{{7*7}} ünïcode \N{SNOWMAN}",
    "a&b?c#d%2e",
    "javascript:window.hacked=1",
)


def write_hostile_run(root: Path) -> Path:
    data = root.parent / "hostile data"
    rng = np.random.default_rng(0)
    for name in ("images", "masks", "answers"):
        (data / name).mkdir(parents=True)
    for stem in STEMS:
        image = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        truth, answer = rng.integers(0, 3, (2, 24, 32), dtype=np.uint8)
        for name, pixels in (("images", image), ("masks", truth), ("answers", answer)):
            (data / name / f"{stem}.png").write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    (data / "labels.txt").write_text(f"background\n{SCRIPT}\n{QUOTE}\n")
    out = root / f"{IMAGE}{QUOTE}"
    given = {"data": {"images": data / "images"}, "gt": data / "masks", "pred": data / "answers"}
    launch("closed-miou", out=out, given={**given, "labels": str(data / "labels.txt"), "resamples": 20})
    manifest = RunFolder(out).read_manifest()
    manifest["model"] = {"name": f"{SCRIPT}:{QUOTE}", "args": {SCRIPT: QUOTE}}
    manifest["created"] = SCRIPT
    (out / "run.json").write_text(json.dumps(manifest))
    return out
