"""The clickability network on a GPU: images a second and memory; and its training on the planted world's users.

`python benchmarks/clickability_gpu.py` prints the speed of SegNeXt-B at 416 x 416 with random weights: inference at
batch 64, training at batch 16 and 64 (forward, loss, backward, Adam). Tensors are on the device already.
`--train --out DIR` trains on simulated users, and writes the history, heat maps, the checkpoint as float16 in parts
below 15 MiB, and the table of five metrics beside other click models (needs numba; `--evaluate PARTS --out DIR` makes
it later, elsewhere). `--device cpu --small` tries all of it in a minute. Needs torch, numpy, scipy and OpenCV.
"""

import argparse
import dataclasses
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from hardlook.models.registry import build
from hardlook.models.torch_inference import exact_inference
from hardlook.networks.clickability import build_network, count_parameters, load_network, save_parts
from hardlook.networks.segnext import SEGNEXT_B, Architecture
from hardlook.rclicks.click_models.clickability import Clickability
from hardlook.rclicks.training.loop import kl_divergence, train
from hardlook.rclicks.training.settings import TrainingSettings
from hardlook.rclicks.training.state import EpochRecord
from hardlook.rclicks.user_clicks.planted_users import PlantedSample, planted_samples

SMALL = Architecture(dims=(8, 16, 16, 32), depths=(1, 1, 1, 1), mlp_ratios=(4, 4, 2, 2), head=32)
SEEDS = {"training": 1, "validation": 2, "test": 3}
PICTURES = 6
WIDTH = 240


@dataclass(frozen=True)
class Held:
    """A sample whose picture is rendered already."""

    content: tuple[Any, ...]

    def read(self) -> tuple[Any, ...]:
        """What the sample holds."""
        return self.content


def autocast(kind: str, device: str) -> torch.autocast:
    """The context in which the network is called."""
    used = torch.float16 if kind == "float16" else torch.bfloat16
    return torch.autocast(torch.device(device).type, dtype=used, enabled=kind != "float32")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a tiny network on a small grid, a few samples")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--evaluate", type=Path, help="a checkpoint or a folder of parts")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", type=Path, help="where the training keeps its state, 0.5 GB (default: OUT/training)")
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--validation", type=int, default=300)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--picture", type=int, nargs=2, default=(320, 240), help="width and height")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--clip", type=float)
    parser.add_argument("--backbone-rate", type=float, default=1.0)
    parser.add_argument("--processes", type=int, default=16)
    given = parser.parse_args()
    if given.small:
        given.samples, given.validation, given.test, given.picture = 24, 8, 4, (96, 72)
        given.epochs, given.processes = min(given.epochs, 3), 1
    if given.train:
        train_on_planted_users(given)
    elif given.evaluate:
        show_and_score(given.evaluate, given)
    else:
        report_speed(given)


def report_speed(given: argparse.Namespace) -> None:
    size, repeats = (64, 2) if given.small else (416, 10)
    network = build_network(SMALL if given.small else SEGNEXT_B).to(given.device)
    print(f"{count_parameters(network) / 1e6:.2f} M parameters, {size} x {size}, {device_name(given.device)}")
    network.eval()
    images, masks, _ = random_batch(64, size, given.device)
    for kind in ("float32", "bfloat16"):

        def infer(kind: str = kind) -> None:
            with exact_inference(), autocast(kind, given.device):
                network(images, masks)

        report(f"inference, {kind}, batch 64", infer, 64, repeats, given.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    network.train()
    for batch in (16, 64):
        shown = random_batch(batch, size, given.device)
        for kind in ("float32", "bfloat16"):

            def learn(kind: str = kind, shown: tuple[torch.Tensor, ...] = shown) -> None:
                with autocast(kind, given.device):
                    maps = network(shown[0], shown[1])
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(kl_divergence(shown[2], maps).mean())
                optimizer.step()

            report(f"training, {kind}, batch {batch}", learn, batch, repeats, given.device)


def random_batch(batch: int, size: int, device: str) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(0)
    planes = [rng.random((batch, *channels, size, size), np.float32) for channels in ((3,), (2,), ())]
    return tuple(torch.from_numpy(plane).to(device) for plane in planes)


def report(name: str, work: Any, batch: int, repeats: int, device: str) -> None:
    on_gpu = device.startswith("cuda")
    for _ in range(3 if on_gpu else 1):
        work()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / repeats
    memory = f", peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB" if on_gpu else ""
    print(f"{name}: {batch / seconds:.0f} images a second{memory}", flush=True)


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device.startswith("cuda") else device


def train_on_planted_users(given: argparse.Namespace) -> None:
    start = time.perf_counter()
    held = {
        name: render(given, name, count)
        for name, count in (("training", given.samples), ("validation", given.validation))
    }
    print(f"{given.samples} + {given.validation} samples rendered in {time.perf_counter() - start:.0f} s", flush=True)
    settings = TrainingSettings(
        epochs=given.epochs,
        batch=given.batch,
        lr=given.lr,
        clip=given.clip,
        backbone_rate=given.backbone_rate,
        size=64 if given.small else 416,
    )
    architecture = SMALL if given.small else SEGNEXT_B
    work = given.work or given.out / "training"
    given.out.mkdir(parents=True, exist_ok=True)
    trained = train(
        held["training"],
        held["validation"],
        work,
        settings,
        architecture=architecture,
        device=given.device,
        workers=given.processes,
        keep=True,
        progress=tell,
    )
    print(f"best epoch {trained.best_epoch}, {time.perf_counter() - start:.0f} s in all", flush=True)
    (given.out / "history.jsonl").write_bytes((work / "history.jsonl").read_bytes())
    best = load_network(trained.checkpoint)
    parts = save_parts(best.network, given.out / "checkpoint", architecture, size=best.size)
    print(f"{len(parts)} parts of at most {max(path.stat().st_size for path in parts) / 2**20:.1f} MiB")
    # What is stored is what is judged: rounding to float16 is part of it.
    show_and_score(given.out / "checkpoint", given)


def tell(record: EpochRecord) -> None:
    scores = ", ".join(f"{name} {value:.3f}" for name, value in record.validation.items())
    print(f"epoch {record.epoch}: loss {record.train_loss:.3f}, {scores}, {record.seconds:.1f} s", flush=True)


def render(given: argparse.Namespace, name: str, count: int) -> list[Held]:
    samples = planted_samples(SEEDS[name], count, tuple(given.picture))
    if given.processes < 2:
        return [Held(sample.read()) for sample in samples]
    with ProcessPoolExecutor(given.processes) as pool:
        return [Held(content) for content in pool.map(PlantedSample.read, samples, chunksize=8)]


def show_and_score(checkpoint: Path, given: argparse.Namespace) -> None:
    model = Clickability(checkpoint, device=given.device)
    samples = planted_samples(SEEDS["test"], given.test, tuple(given.picture))
    given.out.mkdir(parents=True, exist_ok=True)
    rows = [picture_row(sample, model) for sample in samples[:PICTURES]]
    cv2.imwrite(str(given.out / "heat-maps.png"), np.concatenate(rows))
    try:
        table = score(model, samples)
    except ModuleNotFoundError as error:
        print(f"no table here, {error}: run --evaluate {checkpoint} where it is installed")
        return
    (given.out / "table.json").write_text(json.dumps(table, indent=1))
    print(f"{'model':14}" + "".join(f"{name:>10}" for name in next(iter(table.values()))))
    for name, scores in table.items():
        print(f"{name:14}" + "".join(f"{value['value']:10.4g}" for value in scores.values()))


def score(model: Clickability, samples: tuple[PlantedSample, ...]) -> dict[str, dict[str, Any]]:
    """The five metrics with intervals of the model, its rivals, and the users' own distribution."""
    from hardlook.rclicks.click_evaluation.stem_scores import METRICS, evaluate_click_model, summarise_rows

    stems = [sample.clicked_stem() for sample in samples]
    rivals = {name: build(name, "click-model") for name in ("uniform", "distance")}
    rivals["saliency"] = build("saliency-clicks", "click-model", {"model": "planted-saliency"})
    table = {}
    for name, rival in {**rivals, "clickability": model, "users": build("planted-users", "click-model")}.items():
        [whole] = summarise_rows(tuple(evaluate_click_model(rival, stems)), METRICS)
        table[name] = {metric: dataclasses.asdict(whole.scores[metric]) for metric in METRICS}
    return table


def picture_row(sample: PlantedSample, model: Clickability) -> np.ndarray[Any, Any]:
    """Image with the region's outline and the clicks, the users' own chances, the network's, each `WIDTH` wide."""
    image, target, error, clicks = sample.read()
    height = round(WIDTH * image.shape[0] / image.shape[1])
    shown = cv2.resize(image[..., ::-1], (WIDTH, height), interpolation=cv2.INTER_LINEAR)
    outline = cv2.resize(error.astype(np.uint8), (WIDTH, height), interpolation=cv2.INTER_NEAREST)
    contours, _ = cv2.findContours(outline, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    clicked = cv2.drawContours(shown.copy(), contours, -1, (255, 255, 255), 1)
    for x, y in (np.asarray(clicks) + 0.5) * WIDTH / image.shape[1]:
        cv2.circle(clicked, (int(x), int(y)), 2, (40, 40, 255), -1)
    predicted = model.click_map(image, target, error, bool((error & target).any())) * error
    maps = [coloured(chances, shown) for chances in (sample.map(), predicted)]
    return np.concatenate([clicked, *maps], axis=1)


def coloured(chances: np.ndarray[Any, Any], shown: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    large = cv2.resize(chances / chances.max(), shown.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    heat = cv2.applyColorMap((255 * large).astype(np.uint8), cv2.COLORMAP_VIRIDIS)
    return np.asarray(cv2.addWeighted(shown, 0.3, heat, 0.7, 0))


if __name__ == "__main__":
    main()
