"""Testing a trained method on stored tasks, on a machine that has torch and numpy alone.

The answers are those of `hardlook run metacoco --model CHECKPOINT` on the same tasks, and so are the counts: right
answers, errors that the context attracted, and how many classes could have attracted them.

>>> tasks = TestTasks(*map(np.array, ([[[0], [1]]], [[[2], [3]]], [[0, 1]], [[0, 1]])), keys=("a task",))
>>> count_answers(np.array([[1, 1]]), tasks, context=np.array([0, 1, 1, 1]))
{'correct': [1], 'attracted': [1], 'misleading': [1]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardlook.models.few_shot.table_episodes import TableEpisodes
from hardlook.models.registry import build
from hardlook.models.torch_inference import exact_inference
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.few_shot.support_heads import HeadTraining
from hardlook.training.few_shot import scores_features
from hardlook.training.images.augmentation import ImageStore
from zoo.study import TestSet, TestTasks

ENCODED, MAX_TASKS, MAX_BYTES = 256, 64, 1 << 29  # images or tasks at a time
MAX_HEADS = 512  # tasks at a time where each trains a head: its many small steps take as long for one task as for all


def test_method(
    network: FewShotMethod, given: TestSet, *, size: int, device: str, check_time: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, dict[str, list[int]]]]:
    """Each mode of a test set and the counts of `count_answers`; `check_time` is called between batches."""
    network.to(device).eval()
    store = ImageStore(torch.from_numpy(np.ascontiguousarray(given.images)).to(device), size)
    table = None
    if network.learner is not None or scores_features(network):
        with exact_inference(inner_gradients=True):
            rows = torch.arange(len(store.images), device=store.images.device)
            table = torch.cat(
                [network.emb_func(store.crop_centre(part)).float() for part in torch.split(rows, ENCODED)]
            )
    for mode, tasks in given.tasks.items():
        if network.learner is not None:
            assert table is not None
            scores = _ask_learner(network, tasks, table)
        else:
            scores = _ask_network(network, tasks, store, table, check_time)
        predicted = np.empty(tasks.order.shape, np.int64)
        np.put_along_axis(predicted, tasks.order, scores.argmax(-1), axis=1)
        yield mode, count_answers(predicted, tasks, given.context)


def _ask_network(
    network: FewShotMethod, tasks: TestTasks, store: ImageStore, table: Tensor | None, check_time: Callable[[], None]
) -> NDArray[np.float32]:
    """(T, queries, ways) by the method's own rule."""
    queries = _order_queries(tasks)
    images = int(np.prod(tasks.support.shape[1:])) + queries.shape[1]
    each = 12 * store.size**2 if table is None else int(table[0].numel()) * 4
    most = MAX_HEADS if isinstance(getattr(network, "head", None), HeadTraining) else MAX_TASKS
    together = max(1, min(most, MAX_BYTES // max(1, each * images)))
    found = []
    for start in range(0, len(tasks), together):
        check_time()
        part = slice(start, start + together)
        rows = [torch.from_numpy(one[part]).to(store.images.device) for one in (tasks.support, queries)]
        support, query = (store.crop_centre(one) if table is None else table[one] for one in rows)
        episodes = Episodes(support, query, keys=tasks.keys[part])
        with exact_inference(inner_gradients=True):
            scores = network.classify(episodes) if table is None else network.score(episodes)
        found.append(scores.float().cpu().numpy())
    return np.concatenate(found)


def _ask_learner(network: Any, tasks: TestTasks, table: Tensor) -> NDArray[np.float32]:
    """(T, queries, ways) by the registered learner that classifies on the method's features."""
    ways, shots = tasks.support.shape[1:]
    arguments = {"c": network.penalty(shots)} if hasattr(network, "penalty") else {}
    learner: Any = build(network.learner, "few-shot-learner", arguments)
    if table.ndim == 4 and learner.accepts == "features":
        table = table.mean((2, 3))
    labels = np.repeat(np.arange(ways), shots)
    features = table.cpu().numpy()
    features.flags.writeable = False
    supports = tasks.support.reshape(len(tasks), -1)
    return np.stack(
        learner.classify(TableEpisodes(features, supports, labels, _order_queries(tasks), ways, tasks.keys))
    )


def _order_queries(tasks: TestTasks) -> NDArray[np.int64]:
    return np.take_along_axis(tasks.query.reshape(len(tasks), -1), tasks.order, axis=1)


def count_answers(predicted: NDArray[np.int64], tasks: TestTasks, context: NDArray[np.int64]) -> dict[str, list[int]]:
    """By task: right answers; wrong ones whose class was shown in the query's context; wrong classes shown there.

    `predicted` (T, queries) are class by class. The third number, summed over wrong answers and divided by the number
    of wrong classes, is what attraction would be by chance.
    """
    ways, each = tasks.query.shape[1:]
    truth = np.repeat(np.arange(ways), each)
    wrong = predicted != truth
    asked = context[tasks.query.reshape(len(tasks), -1)]
    answered = np.take_along_axis(tasks.support_context, predicted, axis=1)
    shown = tasks.support_context[:, None, :] == asked[:, :, None]
    others = shown & (np.arange(ways) != truth[:, None])
    counts = {
        "correct": ~wrong,
        "attracted": wrong & (answered == asked),
        "misleading": np.where(wrong, others.sum(2), 0),
    }
    return {name: one.sum(1).astype(int).tolist() for name, one in counts.items()}
