"""What the saliency study can be told."""

from __future__ import annotations

from typing import ClassVar

from hardlook.benchmarks.one_shot_pairs.asked_models import AskedModel
from hardlook.benchmarks.one_shot_pairs.study_lists import StudyOptions
from hardlook.contract.options import option


class BiasSaliencyOptions(StudyOptions):
    """Options of `hardlook bias saliency`."""

    command: ClassVar[str] = "hardlook bias saliency"

    saliency: str | None = option(
        None, "The saliency model (default u2netp; planted-saliency on the planted world).", changes="answers"
    )
    saliency_args: str = option("", "Arguments of the saliency model: key=value, commas between.", changes="answers")
    sigma: float = option(
        0.1, "Standard deviation of the Gaussian that blurs, as a share of the diagonal.", changes="answers", gt=0, le=1
    )
    salient_above: float = option(
        0.5, "A target is salient where mask and saliency mask have an IoU above this.", changes="scores", ge=0, lt=1
    )

    def saliency_model(self) -> AskedModel:
        """The saliency model that these options mean."""
        return AskedModel(self.saliency or ("u2netp" if self.data else "planted-saliency"), self.saliency_args)
