"""The exercise of every role.

>>> from hardlook.models.roles import ROLES
>>> set(EXERCISES) == set(ROLES)
True
"""

from __future__ import annotations

from collections.abc import Mapping

from hardlook.models.conformance.dense import INSTANCE, PANOPTIC, SALIENCY, SEMANTIC
from hardlook.models.conformance.encoders import ENCODER, IMAGE_TEXT_ENCODER, TEXT_ENCODER
from hardlook.models.conformance.exercise import Exercise
from hardlook.models.conformance.few_shot import FEW_SHOT, ONE_SHOT
from hardlook.models.conformance.interactive import CLICKS, PROMPTABLE

EXERCISES: Mapping[str, Exercise] = {
    "encoder": ENCODER,
    "text-encoder": TEXT_ENCODER,
    "image-text-encoder": IMAGE_TEXT_ENCODER,
    "saliency": SALIENCY,
    "semantic-segmenter": SEMANTIC,
    "instance-segmenter": INSTANCE,
    "panoptic-segmenter": PANOPTIC,
    "one-shot-segmenter": ONE_SHOT,
    "few-shot-learner": FEW_SHOT,
    "promptable-segmenter": PROMPTABLE,
    "click-model": CLICKS,
}
