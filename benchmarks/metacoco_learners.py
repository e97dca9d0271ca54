"""Few-shot learners on cached features: tasks a second on one thread, beside per-task loops, in one run.

Run `python benchmarks/metacoco_learners.py`. Tasks are 5-way 5-shot with 15 queries a class and 640-d features, made
from a fixed seed. Targets: nearest centroid 2,000 tasks/s and 20 times a loop that encodes each task's images anew;
ridge 1,500 tasks/s; a linear head of 100 steps 50 tasks/s and 10 times a torch loop. Seconds are processor time, best
of a few runs. The encoding loop needs the weights `efficientnet-lite0`, the torch loop torch; without them they are
left out.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as ReferenceRidge
from sklearn.neighbors import NearestCentroid as ReferenceCentroid
from threadpoolctl import threadpool_limits

from hardlook.errors import HardlookError
from hardlook.models.registry import build
from hardlook.models.roles import Episode, FewShotLearner

WAYS, SHOTS, QUERIES, WIDTH = 5, 5, 15, 640
TASKS, LOOP_TASKS, STEPS = 512, 16, 100
TARGETS = {"nearest-centroid": 2_000, "ridge": 1_500, "linear-head steps=100": 50}
CENTROID_RATIO, HEAD_RATIO = 20, 10


def episodes() -> list[Episode]:
    """Tasks whose classes overlap, as features of a ReLU network do: at least 0, about half of them 0."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(WAYS), SHOTS)

    def shown(centres: NDArray[np.float64], each: int) -> NDArray[np.float32]:
        noise = rng.standard_normal((WAYS * each, WIDTH))
        return np.maximum(np.repeat(centres, each, axis=0) + noise, 0).astype(np.float32)

    made = []
    for index in range(TASKS):
        centres = 0.5 * rng.standard_normal((WAYS, WIDTH))
        made.append(Episode(shown(centres, SHOTS), labels, shown(centres, QUERIES), WAYS, f"task {index}"))
    return made


def rate(work: Callable[[], object], tasks: int, repeats: int = 3) -> float:
    """Tasks a second of the best run: the others measure what else the machine was doing."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return tasks / min(seconds)


def torch_head(episode: Episode, steps: int) -> object:
    """The loop that people write: one task, one layer, one optimiser."""
    import torch

    support, query = torch.from_numpy(episode.support), torch.from_numpy(episode.query)
    labels = torch.from_numpy(episode.support_labels)
    head = torch.nn.Linear(WIDTH, WAYS)
    optimiser = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
    done = 0
    while done < steps:
        order = torch.randperm(len(support))
        for start in range(0, min(len(order), 4 * (steps - done)), 4):
            batch = order[start : start + 4]
            optimiser.zero_grad()
            torch.autograd.backward(torch.nn.functional.cross_entropy(head(support[batch]), labels[batch]))
            optimiser.step()
            done += 1
    return head(query)


def scikit_learn(kind: str, episode: Episode) -> object:
    models = {
        "nearest-centroid": ReferenceCentroid,
        "ridge": lambda: ReferenceRidge(alpha=50.0, fit_intercept=False),
        "logistic": lambda: LogisticRegression(max_iter=1000),
    }
    targets = np.eye(WAYS)[episode.support_labels] if kind == "ridge" else episode.support_labels
    return models[kind]().fit(episode.support, targets).predict(episode.query)


def encoding_rate() -> float | None:
    """Tasks a second of a loop that encodes the 100 images of each task before it classifies them."""
    try:
        encoder = build("efficientnet-lite0", "encoder")
        import torch
    except HardlookError:
        return None
    torch.set_num_threads(1)
    images = list(np.random.default_rng(0).integers(0, 256, (WAYS * (SHOTS + QUERIES), 84, 84, 3), np.uint8))
    learner: FewShotLearner = build("nearest-centroid", "few-shot-learner")
    labels = np.repeat(np.arange(WAYS), SHOTS)

    def one_task() -> None:
        vectors = encoder.encode(images).vectors
        learner.classify([Episode(vectors[: WAYS * SHOTS], labels, vectors[WAYS * SHOTS :], WAYS)])

    return rate(one_task, 1, repeats=2)


def verdict(figure: float, target: float | None, unit: str) -> str:
    return "" if target is None else f"; target {target:,}{unit}: {'met' if figure >= target else 'MISSED'}"


def main() -> None:
    tasks = episodes()
    few = tasks[:LOOP_TASKS]
    settings: dict[str, dict[str, int]] = {
        name: {} for name in ("nearest-centroid", "cosine-centroid", "k-nn", "matching", "ridge", "logistic")
    }
    rates = {}
    with threadpool_limits(limits=1):
        for name, args in [*settings.items(), ("soft-k-means", {}), ("linear-head", {"steps": STEPS})]:
            learner = build(name, "few-shot-learner", args)
            called = " ".join([name, *(f"{key}={value}" for key, value in args.items())])
            rates[name] = rate(lambda learner=learner: learner.classify(tasks), len(tasks))  # type: ignore[misc]
            print(f"{called}: {rates[name]:,.0f} tasks/s{verdict(rates[name], TARGETS.get(called), ' tasks/s')}")
            if name in ("nearest-centroid", "ridge", "logistic"):
                peer = rate(lambda name=name: [scikit_learn(name, one) for one in few], len(few))  # type: ignore[misc]
                print(f"  {rates[name] / peer:,.1f}x scikit-learn task by task ({peer:,.0f} tasks/s)")
        for name in ("linear-head", "cosine-head", "neg-cosine-head"):
            published = build(name, "few-shot-learner")
            full = rate(lambda published=published: published.classify(tasks), len(tasks), repeats=1)  # type: ignore[misc]
            print(f"{name}, 100 epochs at batch 4 as published (700 steps): {full:,.0f} tasks/s")
        encoding = encoding_rate()
        if encoding is not None:
            ratio = rates["nearest-centroid"] / encoding
            print(f"nearest-centroid: {ratio:,.0f}x a loop that encodes anew ({encoding:.2f} tasks/s)", end="")
            print(verdict(ratio, CENTROID_RATIO, "x"))
        compare_with_torch(few, rates["linear-head"])


def compare_with_torch(few: list[Episode], ours: float) -> None:
    try:
        import torch
    except ImportError:
        print("torch is not installed: no torch loop to compare with")
        return
    torch.set_num_threads(1)
    peer = rate(lambda: [torch_head(one, STEPS) for one in few], len(few))
    print(f"linear-head steps={STEPS}: {ours / peer:,.1f}x a torch loop ({peer:,.0f} tasks/s)", end="")
    print(verdict(ours / peer, HEAD_RATIO, "x"))


if __name__ == "__main__":
    main()
