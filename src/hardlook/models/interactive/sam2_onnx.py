"""SAM 2 without torch: an encoder and a decoder for onnxruntime.

Ravi et al., "SAM 2: Segment anything in images and videos", ICLR 2025. The decoder takes clicks in pixels of the
encoder's square, adds the point that says there is no box, and gives three masks: it has no output for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.models.interactive.prompts import PromptGroup, PromptPolicy, answer_in_groups
from hardlook.models.interactive.sam_frame import prepare_sam2_image
from hardlook.models.roles import Clicks, Image, Prompted
from hardlook.models.weights.install import locate_weights
from hardlook.networks.loading import open_onnx

ENCODER = "sam2_hiera_tiny_encoder.with_runtime_opt.ort"
DECODER = "sam2_hiera_tiny_decoder_pr1.onnx"
PROMPT = {"point_coords", "point_labels", "mask_input", "has_mask_input"}


class Sam2Onnx:
    """SAM 2 (tiny by default); `encoder` and `decoder` are files of another size, exported with the same names.

    `previous` is the prompt policy's (the masks are always three); `threads` is how many cores one call may use;
    `batch` is the most prompts in one call of the decoder.
    """

    def __init__(
        self,
        encoder: Path | None = None,
        decoder: Path | None = None,
        previous: bool = True,
        threads: int = 1,
        batch: int = 16,
    ) -> None:
        if (encoder is None) != (decoder is None):
            remedy = "give both, or neither for sam2-hiera-tiny"
            raise OptionError("one of encoder and decoder is given without the other", remedy=remedy)
        if batch < 1:
            raise OptionError(f"batch {batch} leaves no prompt to answer", remedy="batch is at least 1")
        policy = PromptPolicy("always", previous)
        if encoder is None or decoder is None:
            installed = locate_weights("sam2-hiera-tiny")
            encoder, decoder = installed[ENCODER], installed[DECODER]
        self.weights_files = (Path(encoder), Path(decoder))
        self._encoder, self._decoder = (
            open_onnx(path, threads, remedy="give .onnx or .ort files of SAM 2") for path in self.weights_files
        )
        self._policy, self._batch = policy, batch
        self._side = _check_pair(self._encoder, self._decoder, self.weights_files[1])
        self.conduct = (
            f"{policy.describe()}; stretched to {self._side} x {self._side} pixels; "
            "a mask is where the logit is over 0."
        )

    def open(self, image: Image) -> Sam2OnnxSession:
        """Encode the image, once."""
        names = [output.name for output in self._encoder.get_outputs()]
        (pixels,) = (given.name for given in self._encoder.get_inputs())
        maps = self._encoder.run(None, {pixels: prepare_sam2_image(image, self._side)})
        side = next(given.shape[-1] for given in self._decoder.get_inputs() if given.name == "mask_input")
        return Sam2OnnxSession(
            decoder=self._decoder,
            maps=dict(zip(names, maps, strict=True)),
            shape=(image.shape[0], image.shape[1]),
            side=self._side,
            mask_side=side,
            policy=self._policy,
            batch=self._batch,
        )


@dataclass(frozen=True)
class Sam2OnnxSession:
    """An encoded image; the state of an answer is the logits (1, h, w) of its mask, between -32 and 32."""

    decoder: Any
    maps: Mapping[str, NDArray[np.float32]]
    shape: tuple[int, int]
    side: int
    mask_side: int
    policy: PromptPolicy
    batch: int

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt; prompts with the same number of clicks are answered in one call."""
        return answer_in_groups(prompts, self.policy, self.batch, self._answer)

    def _answer(self, group: PromptGroup) -> list[Prompted]:
        height, width = self.shape
        nothing = np.zeros((len(group.places), 1, self.mask_side, self.mask_side), np.float32)
        logits, scores = self.decoder.run(
            ["masks", "iou_predictions"],
            {
                **self.maps,
                "point_coords": group.scaled(self.side / width, self.side / height),
                "point_labels": group.labels.astype(np.float32),
                "mask_input": np.stack(group.states) if group.states else nothing,
                "has_mask_input": np.array([bool(group.states)], np.float32),
            },
        )
        chosen = logits[np.arange(len(scores)), scores.argmax(axis=1)]
        return [
            Prompted(
                cv2.resize(one, (width, height), interpolation=cv2.INTER_LINEAR) > 0,
                one[None].copy() if self.policy.previous else None,
            )
            for one in chosen
        ]


def _check_pair(encoder: Any, decoder: Any, path: Path) -> int:
    """The side of the encoder's square; an error where the two files are no pair."""
    given = {one.name for one in encoder.get_outputs()} | PROMPT
    wanted = {one.name for one in decoder.get_inputs()}
    if given != wanted or len(encoder.get_inputs()) != 1:
        what = f"the decoder takes {', '.join(sorted(wanted))}, expected {', '.join(sorted(given))}"
        raise ModelError(what, file=path, remedy="give an encoder and a decoder that were exported together")
    return int(encoder.get_inputs()[0].shape[-1])
