"""LP-FT: a linear probe on the supports first, then the encoder and the probe tuned together.

Kumar, Raghunathan, Jones, Ma and Liang, "Fine-tuning can distort pretrained features and underperform
out-of-distribution", ICLR 2022; MetaCoCo's LP-FT-FB (Wang et al., "Revisit finetuning strategy for few-shot learning to
transfer the embeddings", ICLR 2023) adds a penalty on the tuned probe, which is not here.

>>> from hardlook.models.registry import find
>>> find("lp-ft").card.extra
'torch'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.models.few_shot.published_settings import BASELINE, LP_FT_RATE, LP_FT_STEPS
from hardlook.models.few_shot.stacking import stack_episodes
from hardlook.models.few_shot.trained_heads import train_heads
from hardlook.models.named_model import OuterModel, build_inner
from hardlook.models.roles import Episode, Features, Image
from hardlook.models.torch_inference import exact_inference

if TYPE_CHECKING:
    from torch import Tensor, nn


BATCH = 8
"""Images that pass the network with gradients at a time; their gradients are summed, so it bounds memory only."""


@runtime_checkable
class TunableEncoder(Protocol):
    """An encoder that also lends its network: a trainable copy takes `inputs(images)` and gives the same vectors."""

    device: str

    def encode(self, images: Sequence[Image]) -> Features:
        """As every encoder's."""
        ...

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """What the network takes, on its device."""
        ...

    def trainable_copy(self) -> nn.Module:
        """The network, free to change, (N, ...) inputs to (N, D) vectors."""
        ...


class LpFt(OuterModel):
    """Scores are the logits of the tuned encoder and head; each episode starts from the encoder as it was.

    The probe is the linear head as published; then come `steps` steps of size `rate` on the mean cross-entropy of all
    supports, with the probe's momentum. `encoder` is a `TunableEncoder`'s name, `encoder_args` as `key=value,...`.
    """

    accepts = "images"
    transductive = False
    flags = ("GL", "TT")

    def __init__(
        self,
        encoder: str = "efficientnet-lite0",
        encoder_args: str = "",
        device: str = "",
        steps: int = LP_FT_STEPS,
        rate: float = LP_FT_RATE,
        seed: int = 0,
    ) -> None:
        require("torch", extra="torch")
        if steps < 0 or not rate > 0:
            raise OptionError(f"steps {steps} of size {rate} tune nothing", remedy="steps from 0, rate above 0")
        super().__init__(build_inner(encoder, "encoder", encoder_args, device=device))
        if not isinstance(self._inner.model, TunableEncoder):
            raise ModelError(
                f"the encoder {encoder!r} cannot be tuned",
                remedy="lp-ft needs an encoder with `inputs` and `trainable_copy`, such as efficientnet-lite0",
            )
        self._encoder: TunableEncoder = self._inner.model
        self.steps, self.rate, self.seed = steps, rate, seed

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 logits per episode."""
        return [self._classify(episode) for episode in episodes]

    def _classify(self, episode: Episode) -> NDArray[np.float32]:
        import torch

        if isinstance(episode.support, np.ndarray) and episode.support.ndim == 2:
            raise ModelError("lp-ft works on images; feature vectors came", unit=episode.key or None)
        network, head = self._encoder.trainable_copy(), self._probe(episode)
        inputs = self._encoder.inputs(list(episode.support))
        labels = torch.from_numpy(np.asarray(episode.support_labels, np.int64)).to(inputs.device)
        tuned = [*network.parameters(), *head.parameters()]
        optimiser = torch.optim.SGD(tuned, lr=self.rate, momentum=BASELINE.momentum)
        with torch.enable_grad(), torch.backends.cudnn.flags(deterministic=True, allow_tf32=False):
            for _ in range(self.steps):
                optimiser.zero_grad()
                for part in _parts(len(labels)):
                    logits = head(network(inputs[part]))
                    loss = torch.nn.functional.cross_entropy(logits, labels[part], reduction="sum")
                    torch.autograd.backward(loss / len(labels))
                optimiser.step()
        with exact_inference():
            asked = self._encoder.inputs(list(episode.query))
            answers = [head(network(asked[part])).cpu().numpy() for part in _parts(len(asked))]
            scores: NDArray[np.float32] = np.concatenate(answers)
        return scores

    def _probe(self, episode: Episode) -> nn.Linear:
        """The linear head of the untouched encoder's vectors, as a layer of torch."""
        import torch

        vectors = self._encoder.encode(list(episode.support)).vectors
        shown = Episode(vectors, episode.support_labels, vectors[:0], episode.ways, episode.key)
        heads = train_heads(stack_episodes([shown]), BASELINE, self.seed)
        layer = torch.nn.Linear(vectors.shape[1], episode.ways, device=self.device or "cpu")
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(heads.weight[0]))
            layer.bias.copy_(torch.from_numpy(heads.bias[0]))
        return layer


def _parts(count: int) -> list[slice]:
    return [slice(start, start + BATCH) for start in range(0, count, BATCH)]
