"""Studies of candidates and of label pairs, and people who judge them as told."""

from __future__ import annotations

import numpy as np
from research_crowd import open_store

from hardlook.collect.store.records import BatchRules, NewAnswer
from hardlook.collect.study.folder import make_study
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask, ReviewTask


def review_study(folder, tasks=6, **settings):
    """Candidates of one colour each, two people a candidate."""
    made = []
    for number in range(tasks):
        image = write_picture(folder, "images", np.full((30, 40, 3), 17 * number % 256, np.uint8))
        name = f"image-{number}.jpg"
        made.append(ReviewTask(f"t{number + 1:06d}", name, name, "cat", ("snow", "sand")[number % 2], image))
    facts = {"candidates": "candidates"}
    return _study(folder, "review", made, facts, target_answers=2, **settings)


def ratings_study(
    folder, labels=(("cat", "dog"), ("cat", "car"), ("bus", "car")), measures=("path", "wup"), **settings
):
    """Every pair under every measure."""
    made = []
    for pair in labels:
        for measure in measures:
            subject = "pair/" + "/".join(pair)
            made.append(
                RatingTask(f"t{len(made) + 1:06d}", subject, "pair", tuple(pair), measure, 0.25 * len(measure) / 4)
            )
    return _study(folder, "ratings", made, {}, target_answers=4, **settings)


def _study(folder, kind, tasks, data, **settings):
    chosen = {"kind": kind, "title": f"A {kind} study", "devices": ("any",), "batch_size": 3, "training_tasks": 0}
    return make_study(
        folder, StudySettings.model_validate(chosen | settings), tasks, made={"round": 1, "left_out": [], "data": data}
    )


def judged_by(study, people):
    """The study's store after these people, each a function from task to value, did all that they were given.

    Also what each of them said: {participant's number: {task: value}}, in the order of joining.
    """
    store, rules, said = open_store(study), BatchRules.of(study.settings), {}
    for number, value_of in enumerate(people, 1):
        who, said[number] = store.join(None, "en", 100.0 * number).id, {}
        store.set_device(who, "any", 100.0 * number)
        while (batch := store.next_batch(who, rules, 100.0 * number)) is not None:
            for trial in batch.trials:
                task = study.by_id[trial.item.task]
                said[number][task.id] = value_of(task)
                answer = NewAnswer(f"key-{trial.id}", trial.id, value=value_of(task), reaction_ms=800.0)
                store.answer(who, answer, lambda clicks: 0, 100.0 * number)
    return store, said
