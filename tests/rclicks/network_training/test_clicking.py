"""Clicks of a training are those of the benchmark: the same rule, the same models, other random numbers."""

import doctest
import subprocess
import sys

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.models.roles import Prompted
from hardlook.rclicks.click_models.simple import Distance
from hardlook.rclicks.clicks.courses import BASE, Instance, Rules, make_clicking_groups
from hardlook.rclicks.clicks.simulation import simulate_clicks
from hardlook.rclicks.network_training import clicking
from hardlook.rclicks.network_training.clicking import TrainingClicks

IMAGE = np.zeros((20, 24, 3), np.uint8)
TARGET = np.zeros((20, 24), bool)
TARGET[3:15, 4:20] = True
NOTHING = np.zeros_like(TARGET)
HALF = TARGET & (np.arange(24) < 9)


def play(clicks, masks, key="a", **settings):
    """All clicks after the masks."""
    session = TrainingClicks(clicks, **settings).begin(key, IMAGE, TARGET, NOTHING, len(masks) + 1)
    given = next(session)
    for mask in masks:
        given = session.send(mask)
    return given


def test_doctest():
    assert doctest.testmod(clicking).failed == 0


@pytest.mark.parametrize(("clicks", "group"), [("centre", 0), ("distance", 1), ("distance", 10)])
def test_they_are_the_clicks_of_the_simulation(clicks, group):
    course = BASE if clicks == "centre" else make_clicking_groups(10)[group - 1]
    instance = Instance("training", "a", IMAGE, TARGET, NOTHING)
    simulation = simulate_clicks(instance, [course], Distance(), Rules(rounds=3, seed=5))
    next(simulation)
    simulation.send([Prompted(HALF)])
    (prompt,) = simulation.send([Prompted(HALF)])
    wanted = [(int(y), int(x), bool(sign)) for (x, y), sign in zip(prompt.points, prompt.positive, strict=True)]
    assert play(clicks, [HALF, HALF], group=group, seed=5) == wanted


def test_draws_follow_from_seed_and_key():
    first = play("uniform", [HALF])
    assert play("uniform", [HALF]) == first
    assert play("uniform", [HALF], seed=1) != first and play("uniform", [HALF], key="b") != first


def test_the_last_group_clicks_nearer_to_the_middle_than_the_first():
    distance = Distance().click_map(IMAGE, TARGET, TARGET, True)
    means = [
        np.mean([distance[play("distance", [], key=str(key), group=group)[0][:2]] for key in range(40)])
        for group in (1, 10)
    ]
    assert means[1] > means[0] + 2


def test_nothing_is_left_to_click_on_a_perfect_mask():
    session = TrainingClicks("distance").begin("a", IMAGE, TARGET, NOTHING, 3)
    next(session)
    with pytest.raises(StopIteration):
        session.send(TARGET)


def test_the_card_says_who_clicks():
    assert TrainingClicks("center").describe() == TrainingClicks("centre").describe() == {"clicks": "centre"}
    told = TrainingClicks("uniform", group=3).describe()
    assert told == {"clicks": "uniform", "arguments": "", "group": 3, "weights": {}}


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(OptionError, match="the centre rule draws no clicks"):
        TrainingClicks("centre", group=2)
    with pytest.raises(OptionError, match="--click-group 11"):
        TrainingClicks("uniform", group=11)


SCRIPT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"polars", "pydantic", "typer"}:
            raise ModuleNotFoundError(f"blocked: {name}", name=name)

sys.meta_path.insert(0, Refuse())
sys.path[:0] = sys.argv[1:2]
import tempfile
from pathlib import Path
import torch
torch.set_num_threads(1)
from tiny_interactive import make_data, make_recipe, train_tiny
with tempfile.TemporaryDirectory() as folder:
    recipe = make_recipe(epochs=1, most_clicks=2, batch=2)
    print(train_tiny(Path(folder), recipe, make_data(4, 1)).card["finished"])
"""


def test_the_training_needs_neither_tables_nor_options_nor_a_command_line(request):
    pytest.importorskip("lightning_fabric")
    support = request.config.rootpath / "tests" / "support"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(support)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip().endswith("True"), done.stderr
