"""EfficientNet-Lite0 on one core of a processor: images a second as a run encodes them, against the plain network.

Run `python benchmarks/cpu_encoder.py`; it needs the weights (`hardlook weights install efficientnet-lite0`). One image
per call, one thread, seconds of processor time (the best of five rounds of 32 images each, the two ways in turn).
"""

import time
from typing import Any

import numpy as np
import torch

from hardlook.models.encoders.efficientnet_lite0 import EfficientNetLite0
from hardlook.models.torch_inference import exact_inference

IMAGES, ROUNDS, TARGET = 32, 5, 1.5


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (227, 227, 3), dtype=np.uint8) for _ in range(IMAGES)]
    encoder = EfficientNetLite0()
    network = encoder._network

    def encode_plainly(image: Any) -> Any:
        with exact_inference():
            return network(encoder.prepare_inputs([image]), ())[0].mean((2, 3)).numpy()

    ways: dict[str, Any] = {
        "plain network": encode_plainly,
        "as runs encode": lambda image: encoder.encode_vectors([image]).vectors,
    }
    answers = {name: np.concatenate([encode(image) for image in images[:8]]) for name, encode in ways.items()}
    seconds = dict.fromkeys(ways, np.inf)
    for _ in range(ROUNDS):
        for name, encode in ways.items():
            start = time.process_time()
            for image in images:
                encode(image)
            seconds[name] = min(seconds[name], time.process_time() - start)
    for name, best in seconds.items():
        print(f"{name:16s} {IMAGES / best:6.1f} images a second on one core")
    plain, fused = seconds.values()
    print(f"ratio {plain / fused:.2f} (target {TARGET})")
    one, other = answers.values()
    print(f"largest difference of a feature: {np.abs(one - other).max():.1e} of {np.abs(one).max():.1f}")


if __name__ == "__main__":
    main()
