"""The loop: killed ten times it ends with the same weights; accumulation, averages, clipping, stages, processes."""

import json
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_few_shot import make_data, make_recipe, train_tiny
from torch import nn

from hardlook.errors import ChangedRun, OptionError, RunError
from hardlook.networks.few_shot.catalogue import find_method, list_methods
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.training import few_shot, loop
from hardlook.training.checkpoint import read_card, read_weights
from hardlook.training.devices import open_fabric
from hardlook.training.few_shot import HISTORY, STATE, StoredEpisodes
from hardlook.training.folder import BUDGET
from hardlook.training.images.augmentation import ImageStore
from hardlook.training.recipes import plan_stages
from hardlook.training.state import read_lines


class Mixed(FewShotMethod):
    """Two stages without batch statistics: a linear classifier, then class means; dropout, so that torch draws."""

    stages = ("classes", "episodes")

    def __init__(self, backbone, classes=6):
        super().__init__(nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Dropout(0.2), nn.Linear(48, 16)))
        self.head = nn.Linear(16, classes)

    def score(self, features):
        return -torch.cdist(features.query, features.support.mean(2)).square()

    def class_loss(self, images, labels):
        scores = self.head(self.emb_func(images))
        return nn.functional.cross_entropy(scores, labels), scores


@pytest.fixture
def mixed(monkeypatch):
    """A recipe whose method is `Mixed`, without dropout where asked."""

    def build(recipe, *, classes, size, seed):
        torch.manual_seed(seed)
        method = Mixed(None, classes)
        method.emb_func[2].p = recipe.options.get("drop", 0.2)
        return method

    monkeypatch.setattr(few_shot, "build_method", build)

    def make(stages=("classes", "episodes"), **changes):
        return make_recipe("mixed", stages, **{"batch": 6, "lr": 0.01, **changes})

    return make


def same(first, second):
    one, other = read_weights(first), read_weights(second)
    return one.keys() == other.keys() and all(torch.equal(value, other[key]) for key, value in one.items())


def history(folder):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in read_lines(folder / HISTORY)]


def train_in_child(folder, recipe, data, milliseconds):
    """Train in a process of its own, which is killed after a while; whether it finished before."""
    child = os.fork()
    if not child:
        # The child must never return into the test.
        try:
            train_tiny(folder, recipe, data, save_seconds=0.0)
        finally:
            os._exit(0)
    deadline = time.monotonic() + milliseconds / 1000
    while time.monotonic() < deadline:
        done, _ = os.waitpid(child, os.WNOHANG)
        if done:
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_killed_ten_times_it_ends_as_if_it_had_not_been(tmp_path, ema):
    recipe, data = make_recipe(epochs=4, ema=ema, clip=5.0), make_data()
    start = time.monotonic()
    train_tiny(tmp_path / "whole", recipe, data, save_seconds=0.0)
    whole = (time.monotonic() - start) * 1000
    rng = np.random.default_rng(int(ema * 10))
    for _ in range(10):
        if train_in_child(tmp_path / "cut", recipe, data, milliseconds=float(rng.uniform(0.02, 0.25)) * whole):
            break
    train_tiny(tmp_path / "cut", recipe, data, save_seconds=0.0)
    assert history(tmp_path / "cut") == history(tmp_path / "whole")
    for folder in ("", "by-iid", "by-ood"):
        assert same(tmp_path / "cut" / folder, tmp_path / "whole" / folder)
    left = sorted(path.name for path in (tmp_path / "cut").iterdir())
    assert left == sorted(path.name for path in (tmp_path / "whole").iterdir()) and STATE not in left


@pytest.mark.parametrize("name", ["maml", "sib", "metal"])
def test_averaged_weights_are_validated_with_their_inner_loop(tmp_path, name):
    """A decay of nearly 0 makes the average the weights themselves: validation finds the same."""
    given = {"batch": 48, "episodes": 2, "epochs": 1, "lr": 0.01}
    given |= {} if name == "metal" else {"option.inner_rate": 0.5}
    stages = find_method(name).stages
    for ema in (0.0, 1e-12):
        train_tiny(tmp_path / str(ema), make_recipe(name, stages, ema=ema, **given), validations=1)
    assert history(tmp_path / "1e-12") == history(tmp_path / "0.0")


def stop_after(steps):
    def report(total, step, images):
        if step >= steps:
            raise KeyboardInterrupt

    return report


def test_weights_with_channels_last_are_saved_and_resumed(tmp_path, monkeypatch):
    """The layout of a GPU, forced on the processor: a killed training ends as the whole one, with plain files."""
    asked = []

    def arrange(module, device, precision):
        asked.append((device.type, precision))
        module.to(memory_format=torch.channels_last)

    monkeypatch.setattr(loop, "arrange_network", arrange)
    recipe, data = make_recipe(epochs=2, ema=0.5), make_data()
    train_tiny(tmp_path / "whole", recipe, data)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "cut", recipe, data, save_seconds=0.0, show_progress=stop_after(7))
    train_tiny(tmp_path / "cut", recipe, data)
    assert same(tmp_path / "cut", tmp_path / "whole") and asked == [("cpu", "float32")] * 3
    monkeypatch.undo()
    train_tiny(tmp_path / "plain", recipe, data)
    found, plain = (read_weights(tmp_path / name) for name in ("whole", "plain"))
    assert all(value.is_contiguous() for value in found.values())
    kernels = [name for name, value in plain.items() if value.ndim == 4]
    assert len(kernels) == 4
    for name in kernels:  # a bias before batch normalisation has no gradient but rounding
        assert (found[name] - plain[name]).norm() < 0.01 * plain[name].norm(), name


@pytest.mark.parametrize("steps", [1, 5, 16, 17, 20])
def test_two_stages_resume_at_any_step(tmp_path, mixed, steps):
    """The class stage has 16 steps: 16 is its end, 17 the first step of the other stage."""
    recipe, data = mixed(optimiser="sgd", momentum=0.9, ema=0.3), make_data()
    train_tiny(tmp_path / "whole", recipe, data)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "cut", recipe, data, save_seconds=0.0, show_progress=stop_after(steps))
    train_tiny(tmp_path / "cut", recipe, data)
    assert same(tmp_path / "cut", tmp_path / "whole") and history(tmp_path / "cut") == history(tmp_path / "whole")
    assert [line["stage"] for line in history(tmp_path / "cut")] == ["classes", "classes", "episodes", "episodes"]
    assert read_card(tmp_path / "cut")["stages"] == [
        {"stage": "classes", "steps": 16, "images": 96},
        {"stage": "episodes", "steps": 12, "images": 108},
    ]


def test_clipping_counts_the_gradients_of_its_own_stage(tmp_path):
    """LEO's second stage keeps the backbone as the first one left it; a resumed stage knows no other gradients."""
    recipe = make_recipe("leo", ("classes", "episodes"), batch=24, lr=0.05, clip=0.5)
    data = make_data(validated=False)
    last = train_tiny(tmp_path / "whole", recipe, data).card["stages"][0]["steps"]
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "cut", recipe, data, save_seconds=0.0, show_progress=stop_after(last + 1))
    train_tiny(tmp_path / "cut", recipe, data)
    assert same(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.parametrize("name", ["rfs-distill", "skd-gen1"])
def test_a_second_generation_learns_from_the_first(tmp_path, name):
    """Also where the training was stopped between the two: the teacher is what the first stage left."""
    recipe, data = make_recipe(name, ("classes", "distillation"), batch=24, lr=0.01), make_data(validated=False)
    train_tiny(tmp_path / "whole", recipe, data)
    steps = read_card(tmp_path / "whole")["stages"]
    assert steps == [{"stage": one, "steps": 4, "images": 96} for one in ("classes", "distillation")]
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "cut", recipe, data, save_seconds=0.0, show_progress=stop_after(4))
    train_tiny(tmp_path / "cut", recipe, data)
    assert same(tmp_path / "cut", tmp_path / "whole")
    first = make_recipe(name.partition("-")[0], ("classes",), batch=24, lr=0.01)
    first = replace(first, stages=recipe.stages[:1])
    train_tiny(tmp_path / "first", first, data)
    weights, teacher = read_weights(tmp_path / "whole"), read_weights(tmp_path / "first")
    held = {key.removeprefix("distill_layer."): one for key, one in weights.items() if key.startswith("distill_layer.")}
    assert len(held) > 20 and all(torch.equal(one, teacher[key]) for key, one in held.items())
    assert not all(torch.equal(one, weights[key]) for key, one in held.items())


def test_the_second_generation_of_rfs_starts_again_and_that_of_skd_goes_on():
    for name in ("rfs-distill", "skd-gen1"):
        recipe = make_recipe(name, ("classes", "distillation"))
        method = few_shot.build_method(recipe, classes=3, size=32, seed=0)
        start = {key: value.clone() for key, value in method.emb_func.state_dict().items()}
        method.start_stage("classes")
        with torch.no_grad():
            for one in (*method.emb_func.parameters(), *method.get_submodule(method.class_layer).parameters()):
                one += 1
        learned = {key: value.clone() for key, value in method.emb_func.state_dict().items()}
        images, labels = torch.rand(4, 3, 32, 32), torch.arange(4) % 3
        plain, _ = method.class_loss(images, labels)
        method.start_stage("distillation")
        wanted = start if name == "rfs-distill" else learned
        for key, value in method.emb_func.state_dict().items():
            if "num_batches" not in key and "running" not in key:
                torch.testing.assert_close(value, wanted[key])
                torch.testing.assert_close(method.distill_layer.emb_func.state_dict()[key], learned[key])
        loss, _ = method.class_loss(images, labels)
        assert loss != plain and not any(one.requires_grad for one in method.distill_layer.parameters())


def test_a_killed_write_leaves_the_state_before(tmp_path, monkeypatch):
    from hardlook.training import checkpoint

    recipe, data = make_recipe(), make_data()
    train_tiny(tmp_path / "whole", recipe, data)
    replace = checkpoint.replace_file
    writes = []

    def fail(path, data):
        writes.append(path.name)
        if len(writes) == 11:
            raise KeyboardInterrupt
        replace(path, data)

    monkeypatch.setattr(checkpoint, "replace_file", fail)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "cut", recipe, data)
    monkeypatch.undo()
    train_tiny(tmp_path / "cut", recipe, data)
    assert same(tmp_path / "cut", tmp_path / "whole")


def test_accumulation_is_a_larger_batch(tmp_path, mixed):
    found = []
    for accumulate in (1, 2, 4):
        recipe = mixed(tasks=4, batch=8, accumulate=accumulate, optimiser="sgd", **{"option.drop": 0.0})
        train_tiny(tmp_path / str(accumulate), recipe, make_data(), validations=1)
        found.append(read_weights(tmp_path / str(accumulate)))
    for other in found[1:]:
        for key, value in found[0].items():
            torch.testing.assert_close(other[key], value, rtol=1e-5, atol=1e-6)
    lines = [history(tmp_path / name) for name in ("1", "2", "4")]
    for other in lines[1:]:
        for line, wanted in zip(other, lines[0], strict=True):
            assert [line["loss"], line["accuracy"]] == pytest.approx([wanted["loss"], wanted["accuracy"]], rel=1e-4)
    untrained = Mixed(None).state_dict()
    assert any(not torch.allclose(found[0][key], untrained[key]) for key in untrained)


def run_steps(mixed, folder, part_lr=None, **changes):
    recipe = mixed(
        ("episodes",), epochs=1, episodes=3, optimiser="sgd", augment="no", **{"option.drop": 0.0, **changes}
    )
    recipe = replace(recipe, stages=(replace(recipe.stages[0], part_lr=part_lr or {}),))
    return train_tiny(folder, recipe, make_data(validated=False), validations=1)


def test_a_step_by_hand(tmp_path, mixed):
    """Three steps of SGD with clipping, an average and a rate of a part's own, computed here without the loop."""
    run_steps(mixed, tmp_path / "plain")
    run_steps(mixed, tmp_path / "parts", part_lr={"emb_func.3.weight": 0.002})
    run_steps(mixed, tmp_path / "clipped", clip=0.05, ema=0.6)
    data = make_data()
    for folder, clip, decay in (("plain", None, None), ("parts", None, None), ("clipped", 0.05, 0.6)):
        torch.manual_seed(0)
        method = Mixed(None)
        method.emb_func[2].p = 0.0
        average = {key: value.clone() for key, value in method.state_dict().items()}
        images = ImageStore(torch.from_numpy(data.images), 32)
        for number in range(3):
            rows = data.draw(np.array([number]))
            support = images.crop_centre(torch.from_numpy(rows.support))
            query = images.crop_centre(torch.from_numpy(rows.query.reshape(1, -1)))
            labels = torch.arange(3).repeat_interleave(2)[None]
            loss, _ = method.loss(Episodes(support, query, labels))
            method.zero_grad()
            loss.backward()
            named = {name: one for name, one in method.named_parameters() if one.grad is not None}
            parameters = list(named.values())
            if clip:
                norm = torch.stack([one.grad.norm() for one in parameters]).norm()
                assert norm > clip
                for one in parameters:
                    one.grad *= clip / (norm + 1e-6)
            with torch.no_grad():
                for name, one in named.items():
                    one -= (0.002 if folder == "parts" and name.startswith("emb_func.3.weight") else 0.01) * one.grad
            for key, value in method.state_dict().items():
                average[key] = average[key] * 0.6 + value * 0.4
        wanted = average if decay else method.state_dict()
        for key, value in read_weights(tmp_path / folder).items():
            torch.testing.assert_close(value, wanted[key], rtol=1e-5, atol=1e-7)


def test_two_processes_train_as_one(tmp_path, mixed):
    recipe = mixed(tasks=2, optimiser="sgd", **{"option.drop": 0.0})
    train_tiny(tmp_path / "one", recipe)
    train_tiny(tmp_path / "two", recipe, fabric=open_fabric("cpu", devices=2, strategy="ddp_fork"))
    one, two = read_weights(tmp_path / "one"), read_weights(tmp_path / "two")
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, rtol=1e-4, atol=1e-6)
    for line, other in zip(history(tmp_path / "one"), history(tmp_path / "two"), strict=True):
        assert line["loss"] == pytest.approx(other["loss"], rel=1e-4) and line["step"] == other["step"]


def test_processes_share_whole_tasks(mixed):
    recipe = mixed(("episodes",))
    plans = plan_stages(recipe, 48)
    trainee = few_shot.FewShotTrainee(Mixed(None), recipe, plans, make_data(), seed=0, size=32)
    with pytest.raises(OptionError, match="cannot be shared by 2 processes"):
        list(trainee.draw_batches(0, 1, 0, 2))


def test_bfloat16_runs_and_float16_needs_a_gpu(tmp_path):
    train_tiny(
        tmp_path / "half", make_recipe(epochs=1), fabric=open_fabric("cpu", precision="bfloat16"), precision="bfloat16"
    )
    train_tiny(tmp_path / "full", make_recipe(epochs=1))
    assert read_weights(tmp_path / "half")["emb_func.layer1.0.weight"].dtype == torch.float32
    assert not same(tmp_path / "half", tmp_path / "full")
    with pytest.raises(OptionError, match="on a GPU only"):
        open_fabric("cpu", precision="float16")


def test_a_budget_of_images_or_of_time_bounds_the_training(tmp_path):
    from hardlook.training.recipes import parse_budget

    done = train_tiny(tmp_path / "images", budget=parse_budget("45images"))
    assert done.card["steps"] == 5 and done.card["stages"][0]["images"] == 45
    start = time.monotonic()
    recipe = make_recipe(epochs=100, episodes=2000)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "time", recipe, budget=parse_budget("1s"), show_progress=stop_after(2), save_seconds=0.0)
    assert json.loads((tmp_path / "time" / BUDGET).read_text())["images"] < 9 * 20_000
    steps = train_tiny(tmp_path / "time", recipe, budget=parse_budget("1s")).card["steps"]
    assert 3 <= steps < 20_000 and time.monotonic() - start < 10
    assert read_lines(tmp_path / "time" / HISTORY)[-1]["step"] == steps


def test_another_training_in_the_folder_is_refused(tmp_path):
    recipe, data = make_recipe(), make_data()
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path, recipe, data, show_progress=stop_after(5))
    with pytest.raises(ChangedRun, match="seed was 0, is 1"):
        train_tiny(tmp_path, recipe, data, seed=1)
    done = train_tiny(tmp_path, recipe, data)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert train_tiny(tmp_path, recipe, data).card == done.card
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    with pytest.raises(ChangedRun, match=r"recipe\.stages\.0\.lr was 0\.001, is 0\.5"):
        train_tiny(tmp_path, make_recipe(lr=0.5), data)


def test_a_damaged_state_is_named(tmp_path):
    from hardlook.errors import DataError

    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path, show_progress=stop_after(5))
    state = tmp_path / STATE
    state.write_bytes(state.read_bytes()[:200])
    with pytest.raises(DataError, match="does not hold the state of a training"):
        train_tiny(tmp_path)


def test_what_diverges_stops_with_a_remedy(tmp_path):
    with pytest.raises(RunError, match="diverged before step"):
        train_tiny(tmp_path, make_recipe(lr=1e30, optimiser="sgd"))


def test_the_best_by_each_selection_is_kept(tmp_path, monkeypatch):
    scores = iter([(0.5, 0.1, 0.3), (0.4, 0.9, 0.3), (0.6, 0.2, 0.2)])
    monkeypatch.setattr(
        few_shot.FewShotTrainee,
        "validate",
        lambda self, module: dict(zip(few_shot.SELECTIONS, next(scores), strict=True)),
    )
    card = train_tiny(tmp_path).card
    assert {name: one["step"] for name, one in card["selections"].items()} == {"blind": 12, "iid": 8, "ood": 4}
    assert [read_card(tmp_path / place)["selected"]["step"] for place in ("", "by-iid", "by-ood")] == [12, 8, 4]
    assert not same(tmp_path, tmp_path / "by-iid") and read_card(tmp_path / "by-ood")["finished"]


def test_without_validation_the_last_weights_are_kept(tmp_path):
    card = train_tiny(tmp_path, data=make_data(validated=False)).card
    assert card["selected"] == {"by": "last", "step": 12, "validation": {}} and card["finished"]


def test_stored_data_trains_as_the_data_does(tmp_path):
    data = make_data()
    few_shot.save_data(data, tmp_path / "data.npz", tasks=12)
    stored = few_shot.load_data(tmp_path / "data.npz")
    assert isinstance(stored.draw, StoredEpisodes)
    train_tiny(tmp_path / "one", data=data)
    train_tiny(tmp_path / "two", data=stored)
    assert same(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("entry", [one for one in list_methods() if one.name != "cpea"], ids=lambda one: one.name)
def test_every_method_trains_and_classifies(entry, tmp_path):
    """A step or two of each stage, a validation, and the folder as a model."""
    from hardlook.models.few_shot.trained import TrainedLearner
    from hardlook.models.roles import Episode

    recipe = make_recipe(entry.name, entry.stages, batch=12, epochs=1, episodes=2, tasks=2, lr=1e-4)
    card = train_tiny(tmp_path, recipe, validations=1).card
    assert card["finished"] and [one["stage"] for one in card["stages"]] == list(entry.stages)
    assert set(card["selected"]["validation"]) == {"blind", "iid", "ood"}
    learner = TrainedLearner(str(tmp_path))
    pictures = list(make_data().validation_images[:9])
    if learner.accepts != "images":
        found = learner.encode(pictures)
        pictures = found.vectors if learner.accepts == "features" else np.stack(found.maps)
    [scores] = learner.classify([Episode(pictures[:3], np.array([2, 0, 1]), pictures[3:], 3, "a")])
    assert scores.shape == (6, 3) and np.isfinite(scores).all()


def test_a_backbone_that_gives_no_tokens_is_refused(tmp_path):
    with pytest.raises(OptionError, match="needs tokens, and Conv64F gives none"):
        train_tiny(tmp_path, make_recipe("cpea"))
