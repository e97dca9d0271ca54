"""LP-FT: train a linear probe on the supports, then fine-tune the encoder and the probe together.

Kumar, Raghunathan, Jones, Ma and Liang, "Fine-tuning can distort pretrained features and underperform
out-of-distribution", ICLR 2022; MetaCoCo's LP-FT-FB (Wang et al., "Revisit finetuning strategy for few-shot learning to
transfer the embeddings", ICLR 2023) adds a penalty on the tuned probe, which is not implemented here.

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
"""Images per forward pass with gradients. Gradients are summed over passes, so this only bounds memory."""


@runtime_checkable
class TunableEncoder(Protocol):
    """An encoder that can also copy its network: the copy maps `prepare_inputs(images)` to the same vectors."""

    device: str

    def encode(self, images: Sequence[Image]) -> Features:
        """Encode images, as every encoder does."""

    def prepare_inputs(self, images: Sequence[Image]) -> Tensor:
        """The input of the network, on its device."""

    def copy_network(self) -> nn.Module:
        """A trainable copy of the network, from (N, ...) inputs to (N, D) vectors."""


class LpFt(OuterModel):
    """The few-shot learner LP-FT; its scores are the logits of the tuned encoder and head.

    Each episode starts from the untuned encoder. The probe is trained as the published linear head. Then `steps` steps
    of SGD with learning rate `rate` and the probe's momentum minimise the mean cross-entropy of all supports. `encoder`
    is the name of a `TunableEncoder`, `encoder_args` its arguments as `key=value,...`.
    """

    accepts = "images"
    units_per_batch = 1  # An episode takes seconds to minutes.
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
            raise OptionError(f"{steps} steps at rate {rate} cannot tune", remedy="steps is at least 0, rate above 0")
        super().__init__(build_inner(encoder, "encoder", encoder_args, device=device))
        if not isinstance(self._inner.model, TunableEncoder):
            remedy = "lp-ft needs an encoder with `prepare_inputs` and `copy_network`, such as efficientnet-lite0"
            raise ModelError(f"the encoder {encoder!r} cannot be tuned", remedy=remedy)
        self._encoder: TunableEncoder = self._inner.model
        self.steps, self.rate, self.seed = steps, rate, seed

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 logits per episode."""
        return [self._classify(episode) for episode in episodes]

    def _classify(self, episode: Episode) -> NDArray[np.float32]:
        import torch

        if isinstance(episode.support, np.ndarray) and episode.support.ndim == 2:
            raise ModelError("lp-ft works on images, got feature vectors", unit=episode.key or None)
        network, head = self._encoder.copy_network(), self._train_probe(episode)
        inputs = self._encoder.prepare_inputs(list(episode.support))
        labels = torch.from_numpy(np.asarray(episode.support_labels, np.int64)).to(inputs.device)
        tuned = [*network.parameters(), *head.parameters()]
        optimiser = torch.optim.SGD(tuned, lr=self.rate, momentum=BASELINE.momentum)
        with torch.enable_grad(), torch.backends.cudnn.flags(deterministic=True, allow_tf32=False):
            for _ in range(self.steps):
                optimiser.zero_grad()
                for part in _split_batches(len(labels)):
                    logits = head(network(inputs[part]))
                    loss = torch.nn.functional.cross_entropy(logits, labels[part], reduction="sum")
                    torch.autograd.backward(loss / len(labels))
                optimiser.step()
        with exact_inference():
            query = self._encoder.prepare_inputs(list(episode.query))
            answers = [head(network(query[part])).cpu().numpy() for part in _split_batches(len(query))]
            scores: NDArray[np.float32] = np.concatenate(answers)
        return scores

    def _train_probe(self, episode: Episode) -> nn.Linear:
        """The linear head trained on the untuned encoder's vectors, as a torch layer."""
        import torch

        vectors = self._encoder.encode(list(episode.support)).vectors
        encoded = Episode(vectors, episode.support_labels, vectors[:0], episode.ways, episode.key)
        heads = train_heads(stack_episodes([encoded]), BASELINE, self.seed)
        layer = torch.nn.Linear(vectors.shape[1], episode.ways, device=self.device or "cpu")
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(heads.weight[0]))
            layer.bias.copy_(torch.from_numpy(heads.bias[0]))
        return layer


def _split_batches(count: int) -> list[slice]:
    return [slice(start, start + BATCH) for start in range(0, count, BATCH)]
