"""A small study of clicks, one of reviews and one of ratings, each served within the test by a clock that is turned."""

from dataclasses import replace

import numpy as np
import pytest
from web_visitors import StudyApp

from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.folder import make_study
from hardlook.collect.study.instances import list_planted_instances
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask, ReviewTask
from hardlook.collect.web.guard import PublicAddress
from hardlook.world.planted import PlantedWorld

pytest.importorskip("starlette", reason="the extra web is not installed")

pytest.importorskip("sqlalchemy", reason="the extra web is not installed")

SCRIPT = "<script>alert('x')</script>\"'&"


@pytest.fixture(scope="session")
def clicks_study(tmp_path_factory):
    settings = StudySettings(
        kind="clicks", title=f"Cups {SCRIPT}", modes=("cut-out", "silhouette"), batch_size=3, training_tasks=1,
        open_link=True,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("clicks") / "study"
    return make_click_study(folder, list_planted_instances(PlantedWorld(seed=0, count=6)), settings)


@pytest.fixture(scope="session")
def review_study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review") / "study"
    names = [write_picture(folder, "images", np.full((8, 9, 3), shade, np.uint8)) for shade in range(4)]
    tasks = [ReviewTask(f"t{n}", f"s{n}", f"{n}.jpg", SCRIPT, "snow", name) for n, name in enumerate(names[:3])]
    tasks.append(ReviewTask("practice", "p", "p.jpg", "cat", "snow", names[3], training=True, answer=0))
    fields = {"devices": ("any",), "batch_size": 2, "target_answers": 2, "open_link": True, "least_answer_seconds": 0}
    settings = StudySettings(kind="review", title="Cats", **fields)
    return make_study(folder, settings, tasks, made={"of": "a test"})


@pytest.fixture(scope="session")
def ratings_study(tmp_path_factory):
    tasks = [RatingTask(f"t{n}", f"pair/{n}", "pair", ("cat", SCRIPT), "path", 0.25) for n in range(3)]
    fields = {"devices": ("any",), "batch_size": 2, "target_answers": 2, "open_link": True, "least_answer_seconds": 0}
    settings = StudySettings(kind="ratings", title="Alike", **fields)
    return make_study(tmp_path_factory.mktemp("ratings") / "study", settings, tasks, made={"of": "a test"})


@pytest.fixture
def make_study_app(tmp_path):
    """`make_study_app(study, settings...)`: the study with other settings, served with an empty database."""
    halls = []

    def make(study, *, public_url="", trusted_proxy="", body_timeout=20.0, **changes):
        changed = replace(study, settings=study.settings.model_copy(update=changes))
        database = f"sqlite:///{tmp_path / f'answers-{len(halls)}.sqlite'}"
        address = PublicAddress(url=public_url, trusted_proxy=trusted_proxy)
        halls.append(StudyApp(changed, database, address=address, body_timeout=body_timeout))
        return halls[-1]

    yield make
    for study_app in halls:
        study_app.close()


@pytest.fixture
def study_app(make_study_app, clicks_study):
    """The study of clicks, served."""
    return make_study_app(clicks_study)
