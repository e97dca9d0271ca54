"""Few-shot learners beside a plain torch loop over the same features, on one thread and on a GPU, in one run.

Run `python benchmarks/few_shot_speed.py`, or with `--device cuda` for the GPU as well. Tasks are 5-way 5-shot with 15
queries a class, rows of one table: vectors of 1,280 numbers, and maps of 1,280 x 7 x 7, as of EfficientNet-Lite0.
The loop is what people write: `features[rows]` of a task, then a few torch calls. Ours are
- `episodes`: a list of episodes, each with its arrays;
- `table`: rows of a table, as `hardlook run metacoco` passes them; a table of up to 4,096 images is multiplied once
  (the second call is timed, the first is printed);
- of maps `first` and `table`: tasks of a table of which no pair of images, or each, is known already;
- `cuda`: the torch version on the GPU, the table there already.
`bare` is the time of the matrix products alone that a task of separate arrays cannot do without, and its share of ours:
no code can be faster than that by the same formula. Seconds are processor time on the processor and wall time on the
GPU, best of a few runs. Imports numpy, torch and the learners alone. Targets: twice the loop on one thread, 20 times on
a GPU; learners on maps 10 times `episodes`.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hardlook.models.few_shot.centroids import CosineCentroid, NearestCentroid
from hardlook.models.few_shot.covamnet import CovaMNet
from hardlook.models.few_shot.deepbdc import DeepBDC
from hardlook.models.few_shot.dn4 import DN4
from hardlook.models.few_shot.frn import FRN
from hardlook.models.few_shot.image_pairs import PairLearner
from hardlook.models.few_shot.matching import Matching
from hardlook.models.few_shot.on_device import DeviceLearner
from hardlook.models.few_shot.ridge import Ridge
from hardlook.models.few_shot.table_episodes import TableEpisodes

WAYS, SHOTS, QUERIES, CHANNELS, SIDE = 5, 5, 15, 1280, 7
SUPPORTS = WAYS * SHOTS
LABELS = np.repeat(np.arange(WAYS), SHOTS)

Tensor = torch.Tensor
Scores = Sequence[NDArray[np.float32]]


def class_means(support: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([support[labels == way].mean(0) for way in range(WAYS)])


def loop_nearest(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
    return -(torch.cdist(query, class_means(support, labels)) ** 2)


def loop_cosine(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
    normalize = torch.nn.functional.normalize
    return normalize(query, dim=1) @ normalize(class_means(support, labels), dim=1).T


def loop_matching(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
    normalize = torch.nn.functional.normalize
    cosines = normalize(query, dim=1) @ normalize(support, dim=1).T
    return cosines.softmax(1) @ torch.nn.functional.one_hot(labels, WAYS).float()


def loop_ridge(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
    targets = torch.nn.functional.one_hot(labels, WAYS).float()
    weights: Tensor = support.T @ torch.linalg.solve(support @ support.T + 50 * torch.eye(len(support)), targets)
    return query @ weights


def bare_centroids(support: NDArray[np.float32], query: NDArray[np.float32]) -> None:
    """Class means, then the products of queries and means."""
    averaging = np.zeros((WAYS, SUPPORTS), np.float32)
    query @ (averaging @ support).T


def bare_matching(support: NDArray[np.float32], query: NDArray[np.float32]) -> None:
    """The products of queries and supports."""
    query @ support.T


def bare_ridge(support: NDArray[np.float32], query: NDArray[np.float32]) -> None:
    """The products of supports in float64, those that make the weights, and those of queries and weights."""
    wide = support.astype(np.float64)
    gram = wide @ wide.T
    query @ (gram[:WAYS] @ wide).astype(np.float32).T


BARE_VECTORS = {
    "nearest-centroid": bare_centroids,
    "cosine-centroid": bare_centroids,
    "matching": bare_matching,
    "ridge": bare_ridge,
}


def bare_cells(support: NDArray[np.float32], query: NDArray[np.float32]) -> None:
    """DN4 and CovaMNet: the products of all cells of queries and supports (11.5 GFLOP)."""
    query @ support.T


def bare_frn(support: NDArray[np.float32], query: NDArray[np.float32]) -> None:
    """FRN: these, the products within each class in float64 with their inverse, and the weights from both."""
    products = query @ support.T
    for pool in np.split(np.arange(len(support)), WAYS):
        wide = support[pool].astype(np.float64)
        inverse = np.linalg.inv(wide @ wide.T + np.eye(len(pool))).astype(np.float32)
        products[:, pool[0] : pool[-1] + 1] @ inverse


BARE_MAPS = {"dn4": bare_cells, "frn": bare_frn, "covamnet": bare_cells}

VECTOR_LEARNERS: dict[str, tuple[type[DeviceLearner], Callable[[Tensor, Tensor, Tensor], Tensor]]] = {
    "nearest-centroid": (NearestCentroid, loop_nearest),
    "cosine-centroid": (CosineCentroid, loop_cosine),
    "matching": (Matching, loop_matching),
    "ridge": (Ridge, loop_ridge),
}
MAP_LEARNERS: dict[str, type[DeviceLearner]] = {"dn4": DN4, "frn": FRN, "covamnet": CovaMNet, "deepbdc": DeepBDC}


def make_tasks(images: int, tasks: int, shape: tuple[int, ...]) -> TableEpisodes:
    """Tasks of a read-only table whose features are at least 0, about half of them 0, as after a ReLU."""
    random = np.random.default_rng(0)
    concepts = 0.5 * random.standard_normal((WAYS, *shape), np.float32)
    table = np.empty((images, *shape), np.float32)
    for row in range(images):
        table[row] = np.maximum(concepts[row % WAYS] + random.standard_normal(shape, np.float32), 0)
    table.flags.writeable = False
    rows = np.stack([random.permutation(images)[: SUPPORTS + WAYS * QUERIES] for _ in range(tasks)])
    keys = tuple(f"task {index}" for index in range(tasks))
    return TableEpisodes(table, rows[:, :SUPPORTS], LABELS, rows[:, SUPPORTS:], WAYS, keys)


def measure(work: Callable[[], Any], tasks: int, repeats: int, clock: Callable[[], float]) -> float:
    """Tasks a second of the best run."""
    seconds = []
    for _ in range(repeats):
        start = clock()
        work()
        seconds.append(clock() - start)
    return tasks / min(seconds)


def compare(ours: Scores, others: Scores) -> str:
    """The largest difference in units of the largest score, and the share of equal answers."""
    size = max(float(abs(one).max()) for one in others)
    apart = max(float(abs(one - other).max()) for one, other in zip(ours, others, strict=True)) / size
    same = np.mean([(one.argmax(1) == other.argmax(1)).mean() for one, other in zip(ours, others, strict=True)])
    return f"differs by {apart:.0e}, {same:.2%} equal answers"


def time_on_device(kind: type[DeviceLearner], episodes: TableEpisodes, device: str) -> tuple[float, Scores]:
    learner = kind(device=device)  # type: ignore[call-arg]
    answers = learner.classify(episodes)  # the table is brought, kernels are chosen
    return measure(lambda: learner.classify(episodes), len(episodes), 5, time.perf_counter), answers


def run_vectors(device: str, sizes: Sequence[int], tasks: int) -> None:
    for images in sizes:
        episodes = make_tasks(images, tasks, (CHANNELS,))
        print(f"\n{images} images, {CHANNELS}-d vectors")
        for name, (kind, loop) in VECTOR_LEARNERS.items():
            time_vectors(name, kind, loop, episodes, device)


def time_vectors(
    name: str,
    kind: type[DeviceLearner],
    loop: Callable[[Tensor, Tensor, Tensor], Tensor],
    episodes: TableEpisodes,
    device: str,
) -> None:
    few = episodes[:256]
    features, labels = torch.from_numpy(np.array(episodes.table)), torch.from_numpy(LABELS)
    rows = [torch.from_numpy(np.concatenate([a, b])) for a, b in zip(few.support, few.query, strict=True)]

    def run_loop() -> Scores:
        with torch.inference_mode():
            return [loop(features[one[:SUPPORTS]], labels, features[one[SUPPORTS:]]).numpy() for one in rows]

    def loop_episodes() -> None:
        with torch.inference_mode():
            for episode in tensors:
                loop(episode[0], labels, episode[1]).numpy()

    tensors = [(torch.from_numpy(one.support), torch.from_numpy(one.query)) for one in few]
    learner, listed = kind(), list(few)
    single_peer = measure(loop_episodes, len(few), 3, time.process_time)
    single = measure(lambda: learner.classify(listed), len(few), 3, time.process_time)
    peer = measure(run_loop, len(few), 3, time.process_time)
    start = time.process_time()
    answers = learner.classify(few)
    first = time.process_time() - start
    table = measure(lambda: learner.classify(few), len(few), 3, time.process_time)
    arrays = [(np.asarray(one.support, np.float32), np.asarray(one.query, np.float32)) for one in few]
    bare = measure(lambda: [BARE_VECTORS[name](*both) for both in arrays], len(few), 3, time.process_time)
    print(
        f"{name}: episodes {single:,.0f} tasks/s ({single / single_peer:.1f}x the loop's {single_peer:,.0f}); ", end=""
    )
    print(f"bare products {bare:,.0f} ({bare / single_peer:.1f}x), which are {single / bare:.0%} of our time")
    print(f"  table {table:,.0f} ({table / peer:.1f}x the loop's {peer:,.0f}, first call {first:.2f} s)", end="; ")
    print(compare(answers, run_loop()))
    if device != "cpu":
        rate, scores = time_on_device(kind, episodes, device)
        print(f"  {device} {rate:,.0f} tasks/s ({rate / peer:.1f}x the loop); {compare(scores[:256], answers)}")


def run_maps(device: str, images: int, tasks: int) -> None:
    episodes = make_tasks(images, tasks, (CHANNELS, SIDE, SIDE))
    print(f"\n{images} images, maps of {CHANNELS} x {SIDE} x {SIDE}")
    for name, kind in MAP_LEARNERS.items():
        time_maps(name, kind, episodes, device)


def time_maps(name: str, kind: type[DeviceLearner], episodes: TableEpisodes, device: str) -> None:
    learner, few = kind(), list(episodes[:2])
    single = measure(lambda: learner.classify(few), len(few), 2, time.process_time)
    answers = learner.classify(few)
    print(f"{name}: episodes {single:.1f} tasks/s", end="")
    if name in BARE_MAPS:
        support, query = (
            np.ascontiguousarray(np.moveaxis(np.asarray(x, np.float32), 1, -1)).reshape(-1, CHANNELS)
            for x in (few[0].support, few[0].query)
        )
        bare = measure(lambda: BARE_MAPS[name](support, query), 1, 3, time.process_time)
        print(f"; bare products {bare:.1f}, which are {single / bare:.0%} of our time", end="")
        first = measure(lambda: kind().classify(episodes[:2]), 2, 2, time.process_time)
        print(f"; first tasks of a table {first:.1f}", end="")
    if kind is DeepBDC or issubclass(kind, PairLearner):
        start = time.process_time()
        learner.classify(episodes)
        first = time.process_time() - start
        table = measure(lambda: learner.classify(episodes), len(episodes), 2, time.process_time)
        print(f"; table {table:,.0f} ({table / single:,.0f}x, all pairs in {first:.1f} s)", end="")
    print()
    if device != "cpu":
        rate, scores = time_on_device(kind, episodes, device)
        print(f"  {device} {rate:,.0f} tasks/s ({rate / single:.0f}x); {compare(scores[:2], answers)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1")
    parser.add_argument("--images", default="1120,9991", help="sizes of the tables of vectors")
    parser.add_argument("--tasks", type=int, default=12_000, help="tasks on the GPU, vectors; a tenth of them for maps")
    parser.add_argument("--map-images", type=int, default=300)
    options = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # read when numpy is imported
        one = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **one})
    torch.set_num_threads(1)
    on_gpu = options.device != "cpu"
    sizes = [int(size) for size in options.images.split(",")]
    run_vectors(options.device, sizes, options.tasks if on_gpu else 256)
    run_maps(options.device, options.map_images, options.tasks // 10 if on_gpu else 64)


if __name__ == "__main__":
    main()
