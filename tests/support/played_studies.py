"""Small studies whose truth is known to the pixel, behind the real application and a real server."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import cv2
import numpy as np

from hardlook.collect.store.store import Store
from hardlook.collect.study.click_regions import ClickRegion
from hardlook.collect.study.clicks import write_click_task
from hardlook.collect.study.folder import make_study
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask, ReviewTask
from hardlook.collect.web.app import make_app
from hardlook.serving import listen, server_url

# A colour that nothing else on the pages has, so that it can be found on a screenshot.
MARK = (255, 0, 255)

QUICK = {"image": 0.1, "target": 0.15, "target_text": 0.2, "again": 0.3}

# Long enough for a test on a busy machine to click before the time.
CALM = {**QUICK, "again": 0.9}


@dataclass
class Clock:
    """The server's time, which a test can put forward."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@dataclass
class Served:
    """A study that is being served; `marks` are the marked pixels (x, y) by task."""

    address: str
    study: object
    store: Store
    clock: Clock
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)


def marked_region(number, size=(160, 120), click_type="first"):
    """A grey scene with a blue disc that has a mark of 5 by 5 pixels in its middle; the disc is to be clicked."""
    (width, height), rng = size, np.random.default_rng(number)
    radius = min(size) // 5
    x = int(rng.integers(radius + 2, width - radius - 2))
    y = int(rng.integers(radius + 2, height - radius - 2))
    slope = np.linspace(90, 200, width)[None, :, None] + np.linspace(-30, 30, height)[:, None, None]
    image = np.repeat(slope, 3, axis=2).astype(np.uint8)
    cv2.rectangle(image, (width // 8, height // 2), (width // 3, height - 8), (190, 150, 90), -1)
    disc = cv2.circle(np.zeros((height, width), np.uint8), (x, y), radius, 1, -1) > 0
    image[disc] = (40, 90, 180)
    image[y - 2 : y + 3, x - 2 : x + 3] = MARK
    stem, kind = f"scene{number}", "" if click_type == "first" else f"_mivos_{click_type}"
    region = ClickRegion(
        "mine", stem, "", stem + kind, image, disc, disc, subject=f"mine/{stem}", exact=True,
        description=f"the blue disc number {number}", click_type=click_type,
    )  # fmt: skip
    return region, (x, y)


def make_click_study(folder, count=3, size=(160, 120), click_types=("first",), training=0, **chosen):
    """A study of marked discs, `count` of them to hand out and `training` to practise on; with its marks."""
    fields = {"kind": "clicks", "title": "Discs", "modes": ("cut-out",), "timings": QUICK, "batch_size": count}
    fields |= {"open_link": True}
    settings = StudySettings.model_validate(fields | {"training_tasks": training} | chosen)
    tasks, marks = [], {}
    for number in range(count * 2 + training):
        region, mark = marked_region(number, size, click_types[number % len(click_types)])
        task = write_click_task(folder, region, settings, f"t{number:06d}", training=number >= count * 2)
        tasks.append(task)
        marks[task.id] = mark
    return make_study(folder, settings, tasks, made={"of": "discs"}), marks


def make_review_study(folder, count=3, **chosen):
    """A study that asks whether pictures show a disc."""
    fields = {"kind": "review", "title": "Reviewed", "devices": ("any",), "batch_size": count, "training_tasks": 0}
    fields |= {"open_link": True, "least_answer_seconds": 0.0}
    settings = StudySettings.model_validate(fields | chosen)
    tasks = []
    for number in range(count):
        image = write_picture(folder, "images", marked_region(number)[0].image)
        tasks.append(ReviewTask(f"t{number:06d}", f"{number}.png", f"{number}.png", "a disc", "on grey", image))
    return make_study(folder, settings, tasks, made={})


def make_rating_study(folder, count=3, question="fit", **chosen):
    """A study that asks about pairs of labels, and about one picture."""
    fields = {"kind": "ratings", "title": "Rated", "devices": ("any",), "batch_size": count, "training_tasks": 0}
    fields |= {"open_link": True, "least_answer_seconds": 0.0}
    settings = StudySettings.model_validate(fields | {"question": question} | chosen)
    image = write_picture(folder, "images", marked_region(0)[0].image)
    tasks = [RatingTask("t000000", "picture/a", "picture", ("disc, box", "ball", "box"), "path", 0.4, image)]
    tasks += [
        RatingTask(f"t{n:06d}", f"pair/{n}", "pair", ("cat", f"dog {n}"), "path", n / 10) for n in range(1, count)
    ]
    return make_study(folder, settings, tasks, made={})


class StudyServer:
    """A server on a free port, which shows one study after another at the same address."""

    def __init__(self, address):
        self.address, self._app = address, None

    async def __call__(self, scope, receive, send):
        await self._app(scope, receive, send)

    @contextmanager
    def serve(self, study, marks=None):
        """Serve the study from now on."""
        clock = Clock()
        with Store.open(study.database) as store:
            store.prepare(study.stored_items, study.settings.devices, study.fingerprint)
            self._app = make_app(study, store, research_key="a key for the tests", clock=clock)
            yield Served(self.address, study, store, clock, marks or {})


@contextmanager
def start_study_server():
    """A study server behind uvicorn, in a thread."""
    import uvicorn

    listening = listen("127.0.0.1", 0)
    study_server = StudyServer(server_url("127.0.0.1", listening).rstrip("/"))
    server = uvicorn.Server(
        uvicorn.Config(study_server, log_level="error", access_log=False, lifespan="off", ws="none")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield study_server
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
