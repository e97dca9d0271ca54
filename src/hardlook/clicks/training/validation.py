"""How well a network fits the clicks of the validation samples, on its own grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardlook.clicks.training.samples import GridSamples, stacked
from hardlook.errors import RunError
from hardlook.metrics.click_map_scores import map_divergence, map_similarity, nss
from hardlook.models.torch_inference import exact_inference

if TYPE_CHECKING:
    from torch import nn

METRICS = ("kl", "sim", "nss")


def validate(network: nn.Module, samples: GridSamples, *, device: str, batch: int) -> dict[str, float]:
    """Means over the samples: `kl` in nats (lower is better), `sim` in [0, 1] and `nss` (higher is better).

    KL and SIM compare the whole map with the click map, NSS looks at the clicks in the part the image covers. The
    network runs in float32, as it will in a benchmark. A map that is 0 all over counts as even; one
    with values that are not finite is a `RunError`.
    """
    network.eval()
    rows: list[tuple[float, ...]] = []
    for group in samples.batches(range(len(samples)), batch):
        images, masks, _ = stacked(group, [False] * len(group))
        with exact_inference():
            maps = network(images.to(device), masks.to(device)).cpu().numpy()
        if not np.isfinite(maps).all():
            remedy = "a lower --lr, a bound by --clip, or --precision float32"
            raise RunError("the network's maps are not finite: the training has diverged", remedy=remedy)
        for sample, plane in zip(group, maps, strict=True):
            chances = plane if plane.sum() > 0 else np.ones_like(plane)
            inside = sample.box.content(chances)
            inside = inside if inside.sum() > 0 else np.ones_like(inside)
            rows.append(
                (
                    map_divergence(sample.target, chances),
                    map_similarity(sample.target, chances),
                    nss(inside, sample.clicks),
                )
            )
    return dict(zip(METRICS, np.mean(rows, axis=0).tolist(), strict=True))
