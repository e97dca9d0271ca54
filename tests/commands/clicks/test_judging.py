"""What an answer depends on: after a change of any of it nothing old is taken for new."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hardlook.clicks.evaluation import Readings
from hardlook.commands.clicks import judging
from hardlook.commands.clicks.judging import Judging


@pytest.fixture
def asked(monkeypatch):
    """The stems that a model was judged on, in their order."""
    found = []
    answer = judging._answer
    monkeypatch.setattr(
        judging, "_answer", lambda crowd, *rest: found.append(crowd.stem.full_stem) or answer(crowd, *rest)
    )
    return found


def test_everything_that_changes_answers_is_in_their_fingerprint():
    plain = Judging(draws=4, seed=0, readings=Readings(), data="a")
    others = [
        replace(plain, draws=5),
        replace(plain, seed=1),
        replace(plain, readings=Readings(wd="paper")),
        replace(plain, data="b"),
    ]
    prints = {one.fingerprint("uniform") for one in (plain, *others)} | {plain.fingerprint("distance")}
    assert len(prints) == 6 and replace(plain).fingerprint("uniform") in prints


def test_other_draws_do_not_reuse_answers(hardlook, tmp_path, asked):
    words = ("clicks", "evaluate", "--models", "distance", "--scenes", 3, "-q", "--out", tmp_path, "--json")
    few = hardlook(*words, "--draws", 2)
    assert len(asked) == 3
    many = hardlook(*words, "--draws", 9)
    assert len(asked) == 6 and many.out != few.out
    # The answers of before are still there.
    assert hardlook(*words, "--draws", 2).out == few.out and len(asked) == 6


def test_other_data_does_not_reuse_answers(hardlook, tmp_path, clicked, broken, asked):
    # The fixture's world with its broken mask mended, so that a pixel of it can be changed here.
    [path] = (broken / "boundary_GT").glob("000003*")
    mask = clicked.masks["000003"].astype(np.uint8) * 255
    words = ("clicks", "evaluate", "--user-clicks", clicked.clicks, "--data", f"grabcut={broken}", "--draws", 2, "-q")
    words = (*words, "--models", "uniform", "--out", tmp_path / "out")
    Image.fromarray(mask).save(path)
    assert hardlook(*words).code == 0
    first = len(asked)
    assert hardlook(*words).code == 0 and len(asked) == first > 0
    mask[tuple(np.argwhere(mask)[0])] = 0
    Image.fromarray(mask).save(path)
    assert hardlook(*words).code == 0 and len(asked) == 2 * first
