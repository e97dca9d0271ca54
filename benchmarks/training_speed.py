"""Our training loop beside a straightforward one in PyTorch, on one device, in one run.

  python benchmarks/training_speed.py --device cuda
  python benchmarks/training_speed.py --image-size 32 --seconds 2 --backbone conv64f --tasks 4

The straightforward loop is what tutorials show: images decoded to tensors in a `Dataset`, augmented one by one with
numpy by the same operations in a `DataLoader` with worker processes, the images of a task copied to the device, one
task after the other; MAML's inner loop in Python, task by task, second order. Networks, tasks, optimiser and precision
are the same, and so is the loss of a first step without augmentation, which is printed for both. Ours is the loop of
`hardlook train`: bytes on the device, augmented there, tasks of a step in one call.

The bare network trains on the same tensors again and again, in the memory layout that our loop chooses for it; our loop
should reach 80 % of it. The straightforward loop leaves the layout as torch has it. Targets on one GPU: 3
times the straightforward loop for ProtoNet with ResNet12, 2.5 times for MAML with Conv64F at 4 tasks per step and 10
times at 32. Needs torch, numpy, safetensors and Fabric; images are random bytes, decoding costs nothing on either side.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from hardlook.networks.few_shot.catalogue import find_method
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.training.devices import arrange_network, multiplying_in, open_fabric
from hardlook.training.few_shot import EpisodeRows, FewShotData, FewShotTrainee, build_method
from hardlook.training.images.colours import DEVIATION, MEAN
from hardlook.training.loop import Calls
from hardlook.training.optimisers import build_optimiser
from hardlook.training.recipes import Recipe, change_recipe, find_recipe, plan_stages

WAYS, SHOTS, QUERIES, CLASSES, EACH = 5, 5, 15, 64, 40
TARGETS = {"protonet": 3.0, "maml 4": 2.5, "maml 32": 10.0}


def make_data(stored: int) -> FewShotData:
    """Random bytes of 64 classes, and tasks drawn by number."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (CLASSES * EACH, stored, stored, 3), dtype=np.uint8)
    labels = np.repeat(np.arange(CLASSES), EACH)

    def draw(numbers: NDArray[np.int64]) -> EpisodeRows:
        keyed = np.random.default_rng(int(numbers[0]))
        classes = np.argsort(keyed.random((len(numbers), CLASSES)), 1)[:, :WAYS]
        places = np.argsort(keyed.random((len(numbers), WAYS, EACH)), 2)[:, :, : SHOTS + QUERIES]
        rows = classes[..., None] * EACH + places
        return EpisodeRows(rows[..., :SHOTS], rows[..., SHOTS:], classes)

    return FewShotData(images, labels, tuple(map(str, range(CLASSES))), draw)


class TaskDataset(Dataset[tuple[Tensor, Tensor]]):
    """One task per item: supports and queries, every image augmented by itself."""

    def __init__(self, data: FewShotData, size: int, augment: bool) -> None:
        self.data, self.size, self.augment = data, size, augment

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        rows = self.data.draw(np.array([number]))
        rng = np.random.default_rng(number)
        support, query = (
            [self._load(row, rng) for row in part.ravel().tolist()] for part in (rows.support, rows.query)
        )
        return torch.stack(support), torch.stack(query)

    def _load(self, row: int, rng: np.random.Generator) -> Tensor:
        image = self.data.images[row]
        room = len(image) - self.size
        y, x = rng.integers(0, room + 1, 2) if self.augment else (room // 2, room // 2)
        image = image[y : y + self.size, x : x + self.size].astype(np.float32)
        if self.augment:
            if rng.random() < 0.5:
                image = image[:, ::-1]
            image = jitter(image, rng)
        scaled = (image - np.array(MEAN, np.float32)) / np.array(DEVIATION, np.float32)
        return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)))


def jitter(image: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Brightness, contrast and saturation each by a factor of .6 to 1.4, in a random order, as Pillow computes them."""
    for which in rng.permutation(3):
        grey = np.floor((image @ np.array([19595, 38470, 7471], np.float32) + 32768) / 65536)[..., None]
        target = (np.float32(0), np.floor(grey.mean() + np.float32(0.5)), grey)[which]
        image = np.floor(np.clip(target + np.float32(rng.uniform(0.6, 1.4)) * (image - target), 0, 255))
    return image


def protonet_loss(network: Any, support: Tensor, query: Tensor) -> Tensor:
    """Of one task, as its paper says."""
    means = network.emb_func(support).view(WAYS, SHOTS, -1).mean(1)
    labels = torch.arange(WAYS, device=query.device).repeat_interleave(QUERIES)
    return functional.cross_entropy(-torch.cdist(network.emb_func(query), means).square(), labels)


def protonet_joint_loss(network: Any, support: Tensor, query: Tensor) -> Tensor:
    """Of one task, supports and queries through the network together, as our method does."""
    both = network.emb_func(torch.cat([support, query]))
    means = both[: WAYS * SHOTS].view(WAYS, SHOTS, -1).mean(1)
    labels = torch.arange(WAYS, device=query.device).repeat_interleave(QUERIES)
    return functional.cross_entropy(-torch.cdist(both[WAYS * SHOTS :], means).square(), labels)


def maml_loss(network: Any, support: Tensor, query: Tensor) -> Tensor:
    """Of one task: steps on the supports, differentiated through, then the queries; batch statistics in both."""
    from torch.func import functional_call

    body, head = network.emb_func, network.classifier
    names = [f"emb_func.{name}" for name, _ in body.named_parameters()]
    names += [f"classifier.{name}" for name, _ in head.named_parameters()]
    fast = dict(zip(names, [*body.parameters(), *head.parameters()], strict=True))
    shown = torch.arange(WAYS, device=query.device).repeat_interleave(SHOTS)
    asked = torch.arange(WAYS, device=query.device).repeat_interleave(QUERIES)

    def forward(images: Tensor) -> Tensor:
        parts = [
            {name.removeprefix(prefix): value for name, value in fast.items() if name.startswith(prefix)}
            for prefix in ("emb_func.", "classifier.")
        ]
        found: Tensor = functional_call(head, parts[1], (functional_call(body, parts[0], (images,)),))
        return found

    for _ in range(network.steps):
        loss = functional.cross_entropy(forward(support), shown)
        found = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {
            name: value - network.inner_rate * gradient
            for (name, value), gradient in zip(fast.items(), found, strict=True)
        }
    return functional.cross_entropy(forward(query), asked)


def run_peer(
    network: FewShotMethod, recipe: Recipe, data: FewShotData, given: argparse.Namespace, loss: Callable[..., Tensor]
) -> Iterator[None]:
    """One step per item: a loop over tasks, a backward pass each, an optimiser step."""
    tasks = recipe.stages[0].tasks
    loader = DataLoader(
        TaskDataset(data, given.image_size, True),
        batch_size=tasks,
        num_workers=given.loader_workers,
        pin_memory=given.device.startswith("cuda"),
        persistent_workers=given.loader_workers > 0,
    )
    optimiser = build_optimiser(network, recipe.stages[0])
    network.to(given.device).train()
    fabric: Any = open_fabric(given.device, precision=given.precision)
    for supports, queries in loader:
        optimiser.zero_grad(set_to_none=True)
        for support, query in zip(supports, queries, strict=True):
            support, query = (one.to(given.device, non_blocking=True) for one in (support, query))
            with fabric.autocast():
                found = loss(network, support, query)
            torch.autograd.backward(found / tasks)
        optimiser.step()
        yield


def run_ours(network: FewShotMethod, recipe: Recipe, data: FewShotData, given: argparse.Namespace) -> Iterator[None]:
    """One step per item, with the batches and losses of `hardlook train`."""
    fabric: Any = open_fabric(given.device, precision=given.precision)
    plans = plan_stages(recipe, len(data.labels))
    trainee = FewShotTrainee(network, recipe, plans, data, seed=0, size=given.image_size, device=fabric.device)
    optimiser = trainee.start_stage(trainee.stages[0])
    arrange_network(network, fabric.device, given.precision)
    wrapped, stepper = fabric.setup_module(Calls(network)), fabric.setup_optimizers(optimiser)
    network.train()
    for step, parts in enumerate(trainee.draw_batches(0, plans[0].last, 0, 1)):
        torch.manual_seed(trainee.start_step(step, 0) or 0)
        optimiser.zero_grad(set_to_none=True)
        for batch in parts:
            fabric.backward(trainee.compute_loss(wrapped, batch).loss / len(parts))
        stepper.step()
        yield


def run_bare(network: FewShotMethod, recipe: Recipe, data: FewShotData, given: argparse.Namespace) -> Iterator[None]:
    """One step per item on the same tensors again and again: what the network alone can do."""
    fabric: Any = open_fabric(given.device, precision=given.precision)
    tasks, side = recipe.stages[0].tasks, given.image_size
    network.to(given.device).train()
    arrange_network(network, fabric.device, given.precision)
    optimiser = build_optimiser(network, recipe.stages[0])
    wrapped, stepper = fabric.setup_module(Calls(network)), fabric.setup_optimizers(optimiser)
    support = torch.randn(tasks, WAYS, SHOTS, 3, side, side, device=given.device)
    query = torch.randn(tasks, WAYS * QUERIES, 3, side, side, device=given.device)
    labels = torch.arange(WAYS, device=given.device).repeat_interleave(QUERIES).expand(tasks, -1)
    episodes = Episodes(support, query, labels)
    while True:
        optimiser.zero_grad(set_to_none=True)
        fabric.backward(wrapped("loss", episodes)[0])
        stepper.step()
        yield


def measure(steps: Iterator[None], tasks: int, given: argparse.Namespace) -> float:
    """Tasks a second after a few steps of warming up."""
    wait: Callable[[], None] = torch.cuda.synchronize if given.device.startswith("cuda") else lambda: None
    for _ in range(given.warm_up):
        next(steps)
    wait()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < given.seconds:
        next(steps)
        count += 1
        wait()
    return count * tasks / (time.perf_counter() - start)


def check_losses(
    network: FewShotMethod, data: FewShotData, given: argparse.Namespace, loss: Callable[..., Tensor]
) -> tuple[float, float]:
    """The loss of the same task, not augmented, by our method and by the straightforward one."""
    support, query = TaskDataset(data, given.image_size, False)[0]
    network.to(given.device).train()
    support, query = support.to(given.device), query.to(given.device)
    labels = torch.arange(WAYS, device=given.device).repeat_interleave(QUERIES)[None]
    shown = support.view(1, WAYS, SHOTS, *support.shape[1:])
    torch.manual_seed(0)
    ours = network.loss(Episodes(shown, query[None], labels))[0]
    torch.manual_seed(0)
    return float(ours.detach()), float(loss(network, support, query).detach())


def compare(name: str, backbone: str, tasks: int, given: argparse.Namespace) -> tuple[float, float]:
    """Tasks a second of ours and of the straightforward loop."""
    data = make_data(round(given.image_size * 96 / 84))
    changes = {"ways": WAYS, "shots": SHOTS, "queries": QUERIES, "tasks": tasks}
    recipe = change_recipe(find_recipe(name, backbone, find_method(name).stages), changes)
    loss = maml_loss if name == "maml" else protonet_loss

    def build() -> FewShotMethod:
        return build_method(recipe, classes=CLASSES, size=given.image_size, seed=0)

    ours, theirs = check_losses(build(), data, given, maml_loss if name == "maml" else protonet_joint_loss)
    print(f"{name}, {backbone}, {tasks} tasks per step: loss of one task {ours:.5f}, straightforward {theirs:.5f}")
    with multiplying_in(given.precision):
        bare = measure(run_bare(build(), recipe, data, given), tasks, given)
        rates = (
            measure(run_ours(build(), recipe, data, given), tasks, given),
            measure(run_peer(build(), recipe, data, given, loss), tasks, given),
        )
    images = WAYS * (SHOTS + QUERIES)
    print(f"  ours {rates[0]:.2f} tasks/s ({rates[0] * images:,.0f} images/s)", end="; ")
    print(f"the bare network {bare * images:,.0f} images/s, of which ours has {rates[0] / bare:.0%}", end="; ")
    print(f"straightforward {rates[1]:.2f}: {rates[0] / rates[1]:.2f} times", end="")
    target = TARGETS.get(name if name == "protonet" else f"{name} {tasks}")
    print(f" (target on a GPU: {target})" if target else "", flush=True)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 (%(default)s)")
    parser.add_argument("--precision", default="float32", help="float32, tf32 or bfloat16 (%(default)s)")
    parser.add_argument("--image-size", type=int, default=84, help="pixels (%(default)s)")
    parser.add_argument("--backbone", default="resnet12", help="of ProtoNet (%(default)s)")
    parser.add_argument("--tasks", default="4,32", help="of a step of MAML, empty for none (%(default)s)")
    parser.add_argument("--loader-workers", type=int, default=4, help="processes of the data loader (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="that each loop is measured (%(default)s)")
    parser.add_argument("--warm-up", type=int, default=3, help="steps before (%(default)s)")
    given = parser.parse_args()
    if given.device == "cpu":
        torch.set_num_threads(1)
    compare("protonet", given.backbone, 1, given)
    for tasks in map(int, filter(None, given.tasks.split(","))):
        compare("maml", "conv64f", tasks, given)


if __name__ == "__main__":
    main()
