"""Goldens of few-shot methods that are fed features where their backbone's output would be."""

import json

import torch
from goldens import fill, goldens_folder, read_golden

from hardlook.networks.few_shot.method import Episodes

CLASSES = (3, 17, 40, 8, 63)  # the training classes of the ways of every golden episode


def list_cases(name, *, part="few_shot", choose=lambda case: True):
    """The cases of a golden, for parametrize; empty where there are no goldens, so that its test skips."""
    try:
        path = goldens_folder(part) / f"method_{name}.json"
    except BaseException as error:  # pytest.skip outside of a test
        if type(error).__name__ != "Skipped":
            raise
        return []
    return [case for case in json.loads(path.read_text())["cases"] if choose(case)] if path.is_file() else []


def read_episodes(golden, case, dtype=torch.float64):
    """The episode of a case as `Episodes`, class-major queries, with labels and training classes."""
    support, query = golden.episode(case, dtype)
    ways = support.shape[1]
    labels = torch.arange(ways).repeat_interleave(query.shape[1] // ways)[None]
    return Episodes(support, query, labels, torch.tensor([CLASSES[:ways]]))


def check_episode_case(golden, case, make, *, special=None, tolerance=1e-8, float32=True, gradients=True, inputs=True):
    """Names, scores, training loss, gradients of features and parameters of `make()` against a case.

    `float32=False` for cases that float32 cannot hold by nature, `inputs=False` without gradients of features. Dropout
    has to be off in what `make` makes.
    """
    dtypes = [(torch.float64, tolerance, None)] + ([(torch.float32, 1e-4, 0.02)] if float32 else [])
    for dtype, allowed, spread in dtypes:
        method = make()
        golden.check_names(method, case)
        method = fill(method, special=special).to(dtype)
        episodes = read_episodes(golden, case, dtype)
        method.eval()
        golden.check(f"{case}/logits", method.classify(episodes)[0], tolerance=allowed, spread=spread)
        method.train()
        for features in (episodes.support, episodes.query):
            features.requires_grad_()
        loss, scores = method.loss(episodes)
        if f"{case}/train_logits" in golden.arrays and scores.numel() == golden.arrays[f"{case}/train_logits"].size:
            golden.check(f"{case}/train_logits", scores[0], tolerance=allowed, spread=spread)
        golden.check_value(case, "loss", loss.detach(), tolerance=max(allowed, 1e-8))
        if dtype == torch.float64 and gradients:
            loss.backward()
            ways, shots = episodes.ways, episodes.shots
            query = episodes.query.grad.unflatten(1, (ways, -1))[0]
            joined = torch.cat([episodes.support.grad[0], query], 1).flatten(0, 1)
            if inputs:
                golden.check(f"{case}/grad_input", joined, tolerance=tolerance)
                golden.check_value(case, "grad_input_norm", joined.norm(), tolerance=tolerance)
            golden.check_gradients(case, method, tolerance=tolerance)
            assert shots == golden.facts["cases"][case]["input"]["shot"]


def check_images_case(name, case, make, scores, *, special=None, float32=1e-4):
    """Scores by name of the array, training scores, loss and gradients of a method on Conv64F."""
    golden = read_golden("few_shot", f"method_{name}")
    for dtype, tolerance, spread in ((torch.float64, 1e-8, None), (torch.float32, float32, 0.02)):
        method = make()
        golden.check_names(method, case)
        fill(method, special=special).to(dtype)
        episodes = read_episodes(golden, case, dtype)
        for array, options in scores.items():
            for option, value in options.items():
                setattr(method, option, value)
            method.eval()
            golden.check(f"{case}/{array}", method.classify(episodes)[0], tolerance=tolerance, spread=spread)
        method.train()
        loss, trained = method.loss(episodes)
        golden.check(f"{case}/train_logits", trained[0], tolerance=tolerance, spread=spread)
        golden.check_value(case, "loss", loss.detach(), tolerance=tolerance)
        if dtype == torch.float64:
            loss.backward()
            golden.check_gradients(case, method, tolerance=1e-7)
