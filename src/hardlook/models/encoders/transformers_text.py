"""BERT, GPT-2 and T5 as encoders of labels: the last layer's token vectors, averaged.

Devlin et al., "BERT", NAACL 2019; Radford et al., "Language models are unsupervised multitask learners", 2019;
Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer", JMLR 2020.

Averages run over all tokens, the marks that the tokenizer adds included. GPT-2's vectors lie in a narrow cone: any
two labels have a cosine near 1 (the published mean over ImageNet's labels is .992), so scores under it say little.
None of the three was trained to make cosines meaningful; CLIP and the sentence encoder were.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from hardlook.models.roles import Vectors
from hardlook.models.torch_inference import exact_inference
from hardlook.models.transformers_folder import (
    TextNetwork,
    average_tokens,
    encode_in_batches,
    open_text_network,
    pad_tokens,
    tokenize,
)

Pooling = Literal["mean", "cls"]

T5_LONGEST = 512


class TokenAverage:
    """Texts to vectors (N, dimension) float32 through a loaded network; `longest` tokens of a text count."""

    def __init__(
        self, loaded: TextNetwork, dimension: int, longest: int, pooling: Pooling, device: str, batch: int
    ) -> None:
        self._loaded, self._longest, self._pooling, self._batch = loaded, longest, pooling, batch
        self.dimension, self.device = dimension, device
        self.weights_files = loaded.files

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32, not normalised."""
        return encode_in_batches(texts, self._batch, self.dimension, self._encode)

    def _encode(self, texts: Sequence[str]) -> Any:
        tokens, mask = pad_tokens(tokenize(self._loaded.tokenizer, texts, self._longest), self.device)
        with exact_inference():
            hidden = self._loaded.network(input_ids=tokens, attention_mask=mask).last_hidden_state
            return (hidden[:, 0] if self._pooling == "cls" else average_tokens(hidden, mask)).cpu().numpy()


class Bert(TokenAverage):
    """A BERT encoder; `pooling` is `mean` over the tokens, or `cls`, the vector of the first mark alone."""

    def __init__(self, path: Path, pooling: Pooling = "mean", device: str = "cpu", batch: int = 64) -> None:
        loaded = open_text_network(
            path, family="bert", architecture="BertModel", device=device, add_pooling_layer=False
        )
        config = loaded.network.config
        super().__init__(loaded, config.hidden_size, config.max_position_embeddings, pooling, device, batch)


class Gpt2(TokenAverage):
    """GPT-2 without its language head, averaged over the tokens; an empty text is the end mark alone."""

    def __init__(self, path: Path, device: str = "cpu", batch: int = 64) -> None:
        loaded = open_text_network(path, family="gpt2", architecture="GPT2Model", device=device)
        config = loaded.network.config
        super().__init__(loaded, config.n_embd, config.n_positions, "mean", device, batch)


class T5(TokenAverage):
    """The encoder of T5, averaged over the tokens; texts are cut at 512 tokens, the length it was trained at."""

    def __init__(self, path: Path, device: str = "cpu", batch: int = 64) -> None:
        loaded = open_text_network(path, family="t5", architecture="T5EncoderModel", device=device)
        super().__init__(loaded, loaded.network.config.d_model, T5_LONGEST, "mean", device, batch)
