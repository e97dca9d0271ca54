"""The metrics as `torchmetrics.Metric`s, for training loops and Lightning; the numbers are those of `hardlook.metrics`.

They take what loops have: logits or label maps on any device, lists of dictionaries of detections, panoptic maps of
(category, instance). `update` and `forward` take predictions first, as everywhere in torchmetrics, while the classes of
`hardlook.metrics` take the truth first. `compute` returns tensors of 64-bit floats without a dimension: one for
`MeanIoU`, a dictionary of them for the others, under the names of the scores on the command line.

>>> import torch
>>> metric = OpenMeanIoU(["cat", "dog"], [[1, 0.5], [0.5, 1]])
>>> metric.update(preds=torch.tensor([[[0, 0]]]), target=torch.tensor([[[0, 1]]]))
>>> scores = metric.compute()
>>> round(float(scores["open-miou"]), 3), round(float(scores["miou"]), 3)
(0.583, 0.25)

The state is exact: counts of pixels, and all that matching needs of each image. So a value of many processes, of merged
metrics or of batches equals, to the last bit, that of `hardlook.metrics` on all data in one pass.
"""

from __future__ import annotations

from hardlook.torchmetrics.accumulator import gather_metric
from hardlook.torchmetrics.mean_iou import MeanIoU, OpenMeanIoU
from hardlook.torchmetrics.open_ap import OpenAP
from hardlook.torchmetrics.open_pq import OpenPQ

__all__ = ["MeanIoU", "OpenAP", "OpenMeanIoU", "OpenPQ", "gather_metric"]
