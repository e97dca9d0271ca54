"""Interactive networks learn from clicks on their errors; steps follow from the seed; kills change nothing."""

import json

import numpy as np
import pytest
from killed_trainings import train_through_kills

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from tiny_interactive import make_data, make_recipe, make_trainee, train_tiny  # noqa: E402

from hardlook.errors import ChangedRun, DataError, ModelError, OptionError  # noqa: E402
from hardlook.training.checkpoint import read_weights  # noqa: E402
from hardlook.training.interactive.recipes import find_interactive_recipe  # noqa: E402
from hardlook.training.interactive.trainee import (  # noqa: E402
    InteractiveData,
    build_interactive,
    group_parameters,
    load_start,
)
from hardlook.training.recipes import Budget  # noqa: E402


class Recorder:
    """A network that answers with a mask that is drawn once, and writes down what it is asked."""

    def __init__(self, module, size=32):
        self.module, self.calls = module, []
        self.logits = torch.randn(1, 1, size, size, generator=torch.Generator().manual_seed(0))

    def __call__(self, name, inputs, points):
        self.calls.append((inputs, points, self.module.training, torch.is_grad_enabled()))
        return {
            "instances": (self.logits + 0 * next(iter(self.module.parameters())).sum()).expand(len(inputs), -1, -1, -1)
        }


def find_clicks(points, sample):
    """Rows (row, column, positive) of a sample's clicks in their order."""
    half = points.shape[1] // 2
    found = [
        (*points[sample, place].tolist(), place < half) for place in range(2 * half) if points[sample, place, 0] >= 0
    ]
    return [(int(row), int(column), positive) for row, column, order, positive in sorted(found, key=lambda one: one[2])]


def test_it_learns(tmp_path):
    trained = train_tiny(tmp_path / "a", make_recipe(lr=0.01, epochs=10), validations=2)
    assert trained.history[-1]["validation_held-back"] > 0.6
    assert trained.card["kind"] == "interactive" and trained.card["finished"]
    assert trained.card["identity"]["clicks"]["clicks"] == "distance"


def test_later_clicks_are_on_errors_of_the_answer_before_which_is_fed_back():
    trainee = make_trainee()
    recorder = Recorder(trainee.module)
    (batch,) = next(trainee.draw_batches(0, 1, 0, 1))
    shown = trainee.show(batch.objects, batch.transforms)
    steps = list(trainee.click(recorder, shown, ["a", "b", "c", "d"], 3))
    assert len(steps) == 3 and len(recorder.calls) == 2
    answer = recorder.logits.sigmoid()
    assert not steps[0][0][:, 3].any()
    for inputs, _ in steps[1:]:
        assert torch.equal(inputs[:, 3:], answer.expand(4, -1, -1, -1))
    mask = answer[0, 0] > 0.49
    for sample in range(4):
        target, valid = shown.targets[sample], shown.valid[sample]
        counts = [find_clicks(points, sample) for _, points in steps]
        assert [len(one) for one in counts] == [1, 2, 3] and counts[2][:2] == counts[1]
        row, column, positive = counts[0][0]
        assert positive and target[row, column]
        for row, column, positive in counts[2][1:]:
            assert valid[row, column] and mask[row, column] == (not positive) and target[row, column] == positive


@pytest.mark.parametrize(("probability", "positive"), [(0.485, True), (0.495, False)])
def test_errors_are_those_of_masks_over_the_released_threshold(probability, positive):
    """.49: an answer below it is an empty mask, one above it a full one."""
    trainee = make_trainee()
    recorder = Recorder(trainee.module)
    recorder.logits = torch.full_like(recorder.logits, probability).logit()
    (batch,) = next(trainee.draw_batches(0, 1, 0, 1))
    *_, (_, points) = trainee.click(recorder, trainee.show(batch.objects, batch.transforms), list("abcd"), 2)
    for sample in range(4):
        first, second = find_clicks(points, sample)
        assert first[2] and second[2] is positive


def test_clicks_are_made_in_evaluation_mode_and_only_the_last_answer_is_differentiated():
    trainee = make_trainee(recipe=make_recipe(most_clicks=6))
    trainee.module.train()
    recorder, batches = Recorder(trainee.module), trainee.draw_batches(0, 12, 0, 1)
    seen = set()
    for (batch,) in batches:
        recorder.calls.clear()
        found = trainee.compute_loss(recorder, batch)
        seen.add(batch.clicks)
        assert [(training, gradient) for _, _, training, gradient in recorder.calls] == (
            [(False, False)] * (batch.clicks - 1) + [(True, True)]
        )
        assert found.count == 4 and found.loss.requires_grad and trainee.module.training
        assert set(found.sums) == {"loss", "iou"}
    assert min(seen) >= 1 and max(seen) <= 6 and len(seen) > 2


def test_a_step_follows_from_the_seed_alone():
    def describe(batch):
        return [batch.objects.tolist(), batch.numbers.tolist(), batch.transforms.matrices.tolist(), batch.clicks]

    whole = [describe(one) for (one,) in make_trainee().draw_batches(0, 5, 0, 1)]
    assert [describe(one) for (one,) in make_trainee().draw_batches(3, 5, 0, 1)] == whole[3:]
    assert describe(next(make_trainee(seed=1).draw_batches(0, 1, 0, 1))[0]) != whole[0]
    halves = [next(make_trainee().draw_batches(2, 3, rank, 2))[0] for rank in (0, 1)]
    assert [row for one in halves for row in one.objects.tolist()] == whole[2][0]
    assert np.concatenate([one.transforms.matrices for one in halves]).tolist() == whole[2][2]


def test_an_epoch_shows_every_object_once():
    trainee = make_trainee()
    count = len(trainee.data.training)
    drawn = trainee.draw_objects(np.arange(2 * count)).tolist()
    for epoch in (drawn[:count], drawn[count:]):
        assert sorted(epoch) == trainee.data.training.tolist()
    assert drawn[:count] != drawn[count:]


def test_targets_are_of_one_object_and_void_pixels_do_not_count():
    trainee = make_trainee(recipe=make_recipe(zoomed=0))
    (batch,) = next(trainee.draw_batches(0, 1, 0, 1))
    shown = trainee.show(batch.objects, batch.transforms)
    assert shown.targets.any((1, 2)).all() and not (shown.targets & ~shown.valid).any()
    assert not shown.valid.all()  # squares of whole images that are no squares reach beyond them
    _, maps = trainee.images.take(batch.objects[:, 0], batch.transforms, 32, outside=[0.0] * 3)
    for place, (_, number) in enumerate(batch.objects.tolist()):
        assert torch.equal(shown.targets[place], maps[place] == number)
        assert torch.equal(shown.valid[place], maps[place] != 255)


def test_killed_and_resumed_it_ends_with_the_same_weights(tmp_path):
    recipe, data = make_recipe(epochs=3, most_clicks=2), make_data(count=8, held=2)
    train_tiny(tmp_path / "whole", recipe, data, validations=3)
    killed = tmp_path / "killed"
    assert train_through_kills(killed, lambda: train_tiny(killed, recipe, data, validations=3, save_seconds=0.0)) == 3
    first, second = (read_weights(tmp_path / name) for name in ("whole", "killed"))
    assert all(torch.equal(first[key], second[key]) for key in first)
    histories = [(tmp_path / name / "history.jsonl").read_text().splitlines() for name in ("whole", "killed")]
    kept = [[{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in one] for one in histories]
    assert kept[0] == kept[1]


def test_who_clicks_changes_the_weights_and_the_folder_refuses_another(tmp_path):
    short = make_recipe(epochs=1, most_clicks=1, batch=2)
    data = make_data(count=4, held=1)
    for clicks in ("centre", "uniform"):
        train_tiny(tmp_path / clicks, short, data, clicks)
    first, second = (read_weights(tmp_path / clicks) for clicks in ("centre", "uniform"))
    assert any(not torch.equal(first[key], second[key]) for key in first)
    train_tiny(tmp_path / "centre", short, data, "centre")
    with pytest.raises(ChangedRun, match="clicks was"):
        train_tiny(tmp_path / "centre", short, data, "uniform")


def test_without_objects_held_back_the_last_weights_are_kept(tmp_path):
    trained = train_tiny(tmp_path / "a", make_recipe(epochs=1), make_data(count=4, held=0))
    assert trained.card["selected"] == {"by": "last", "step": trained.card["steps"], "validation": {}}


def test_budgets_of_objects_and_of_time(tmp_path):
    short = make_recipe(most_clicks=1, batch=2)
    trained = train_tiny(tmp_path / "a", short, make_data(4, 0), budget=Budget(images=6))
    assert trained.card["steps"] == 3 and trained.card["stages"][0]["images"] == 6
    timed = train_tiny(tmp_path / "b", short, make_data(4, 0), budget=Budget(seconds=0.2))
    assert 1 <= timed.card["steps"] < 200


def test_the_backbone_has_its_own_rate():
    recipe = make_recipe(backbone_rate=0.1)
    network = build_interactive(recipe, seed=0)
    names = {id(one): name for name, one in network.named_parameters()}
    (slow, factor), (fast, whole) = group_parameters(network, recipe)
    assert (factor, whole) == (0.1, 1.0) and len(slow) + len(fast) == len(names)
    assert all(names[id(one)].startswith("feature_extractor.backbone.") for one in slow)
    assert any(names[id(one)].startswith("maps_transform.") for one in fast)
    published = find_interactive_recipe("ritm", "hrnet18s")
    with torch.device("meta"):
        hrnet = build_interactive(published, seed=0)
    names = {id(one): name for name, one in hrnet.named_parameters()}
    slow, fast = ([names[id(one)] for one in group] for group, _ in group_parameters(hrnet, published))
    assert {"feature_extractor.cls_head.weight", "feature_extractor.conv1.weight"} <= set(slow)
    assert {"maps_transform.0.weight", "feature_extractor.conv3x3_ocr.0.weight"} <= set(fast)


def test_starts_are_taken_by_name_and_shape():
    recipe = make_recipe()
    network, other = build_interactive(recipe, seed=0), build_interactive(recipe, seed=1)
    backbone = other.feature_extractor.backbone.state_dict()
    taken = load_start(network, {**backbone, "fc.weight": torch.zeros(3, 3)})
    assert taken == len(backbone)
    assert all(torch.equal(network.feature_extractor.backbone.state_dict()[key], backbone[key]) for key in backbone)
    assert load_start(network, other.state_dict()) == len(other.state_dict())
    with pytest.raises(ModelError, match="none of the 1 tensors"):
        load_start(network, {"other": torch.zeros(1)})


def test_wrong_settings_are_refused():
    with pytest.raises(OptionError, match=r"cannot be made with .*depth=3"):
        build_interactive(make_recipe(**{"option.depth": 3}), seed=0)
    with pytest.raises(DataError, match="two objects") as caught:
        next(make_trainee(recipe=make_recipe(batch=1)).draw_batches(0, 1, 0, 1))
    assert "cannot be shared" in caught.value.what
    data = make_data(4, 0)
    with pytest.raises(DataError, match="no object to train on"):
        make_trainee(data=InteractiveData(data.images, data.training[:0], data.held))
