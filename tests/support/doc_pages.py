"""Pages of the documentation: their fenced blocks, and how these are run in order in an empty folder.

The pages are shared out among the test files of tests/docs, so that two processes can work on them.
"""

import importlib.util
import os
import re
import shlex
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import object_stores
import preset_folders
import published_folders
import pytest
from command_server import command_folders, python_command

ROOT = Path(__file__).parents[2]

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

HARNESS = "the harness"

TOPICS = {
    "toss": "one-shot", "build-toss": "one-shot", "bias": "one-shot", "one-shot-networks": "one-shot",
    "toss-study": "one-shot",
    "metacoco": "contexts", "concept-context-data": "contexts", "planting-contexts": "contexts",
    "spuriousness": "contexts", "quick-start": "contexts", "training": "contexts",
    "rclicks": "clicks", "clicks": "clicks", "interactive-models": "clicks", "interactive-checkpoints": "clicks",
    "robust-clicks": "clicks",
    "closed-miou": "labels", "open-miou": "labels", "open-ap": "labels", "open-pq": "labels", "similarity": "labels",
    "label-tables": "labels", "datasets": "labels", "open-vocabulary": "labels",
    "free-words": "labels",
    "open-vocabulary-networks": "labels",
    "score-published-methods": "labels", "metrics-in-training": "labels",
    "collect": "collecting", "collect-security": "collecting", "collect-deploy": "collecting",
    "compare": "reports", "report": "reports", "leaderboard": "reports", "explorer": "reports", "export": "reports",
    "continuous-integration": "reports",
    "model-families": "families", "timm": "families",
}  # fmt: skip

FENCE = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

# Images of real datasets that pages run on, the first of their lists.
VOC_SUBSET, COCO_SUBSET = 10, 20


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands beside it (`file=`, `needs=`, `skip=`, `continues`), text and line.

    A block of Python that `continues` goes on where those before it ended, in one program.
    """

    language: str
    notes: tuple[tuple[str, str], ...]
    text: str
    line: int

    def note(self, name):
        return [value for key, value in self.notes if key == name]


def join_continued(blocks):
    """The blocks, each with the texts of those that continue it."""
    joined = []
    for block in blocks:
        if "continues" in dict(block.notes):
            earlier = max(place for place, one in enumerate(joined) if one.language == block.language)
            joined[earlier] = replace(joined[earlier], text=f"{joined[earlier].text}\n{block.text}")
        else:
            joined.append(block)
    return joined


def blocks_of(page):
    content = page.read_text()
    for match in FENCE.finditer(content):
        language, *notes = shlex.split(match["info"])
        pairs = tuple(tuple(note.partition("=")[::2]) for note in notes)
        yield Block(language, pairs, match["text"], content[: match.start()].count("\n") + 1)


def pages_about(topic):
    """The pages of one topic; all that have none of their own are the harness's."""
    return [page for page in PAGES if TOPICS.get(page.stem, HARNESS) == topic]


def run_page(page, tmp_path, request):
    """Run every block of the page; the first that fails is named by its line."""
    path = os.pathsep.join([*command_folders(), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "120"}
    for block in join_continued(blocks_of(page)):
        for need in block.note("needs"):
            environment |= provide(need, tmp_path, request) or {}
        if block.note("file"):
            path = tmp_path / block.note("file")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif not block.note("skip") and block.language in ("bash", "python"):
            start = ["bash", "-euo", "pipefail", "-c"] if block.language == "bash" else [*python_command(), "-c"]
            answer = subprocess.run(
                [*start, block.text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
            )
            assert answer.returncode == 0, f"{page.name}:{block.line}\n{block.text}\n{answer.stdout}\n{answer.stderr}"


def provide(need, folder, request):
    """Put what a block needs into the folder, or skip with the reason; what it adds to the environment."""
    if need == "s3":
        return object_stores.start_for_page(request, folder)
    if need == "voc":
        real = request.getfixturevalue("shared_data") / "data" / "VOCdevkit" / "VOC2012"
        root = folder / "VOCdevkit" / "VOC2012"
        (root / "ImageSets" / "Segmentation").mkdir(parents=True)
        ids = (real / "ImageSets" / "Segmentation" / "train.txt").read_text().split()[:VOC_SUBSET]
        # Of the images too: commands that take no split read every mask of the folder.
        for name, ending in (("JPEGImages", "jpg"), ("SegmentationClass", "png"), ("SegmentationObject", "png")):
            (root / name).mkdir()
            for image in ids:
                (root / name / f"{image}.{ending}").symlink_to(real / name / f"{image}.{ending}")
        (root / "ImageSets" / "Segmentation" / "train.txt").write_text("\n".join(ids))
    elif need == "coco100":
        real = request.getfixturevalue("shared_data") / "data" / "coco100"
        for image in sorted((real / "images").iterdir())[:COCO_SUBSET]:
            for source in (image, real / "semantic" / f"{image.stem}.png"):
                link = folder / "coco100" / source.relative_to(real)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(source)
    elif need == "published-datasets":
        published_folders.make_documented(folder)
    elif need == "evaluator-outputs":
        preset_folders.make_documented(folder)
    elif need == "pip":
        if importlib.util.find_spec("setuptools") is None:
            pytest.skip("the rest of the page builds a package, and setuptools is not installed")
    else:
        from hardlook.errors import HardlookError
        from hardlook.models.weights.install import locate_weights

        try:
            locate_weights(need)
        except HardlookError as error:
            pytest.skip(f"the rest of the page needs weights: {error}")
