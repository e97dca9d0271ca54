"""Models that are no planted ones, registered without importing what they run on.

Licences are those of the weights, where there are any. `weights` are names for `hardlook weights install`; for models
that use another model by name, `extra` and `weights` are what their default needs.

>>> from hardlook.models.registry import find
>>> find("u2netp").card.extra
'onnx'
"""

from __future__ import annotations

from hardlook.models.registry import register_lazily

register_lazily(
    "u2netp",
    "hardlook.models.saliency.u2netp:U2NetP",
    role="saliency",
    summary="U2-Net (p), salient object detection",
    licence="MIT",
    extra="onnx",
    weights=("u2netp",),
)
register_lazily(
    "deeplabv3-voc",
    "hardlook.models.segmenters.deeplabv3_voc:DeepLabV3VOC",
    role="semantic-segmenter",
    summary="DeepLabv3 on the VOC classes; trained on VOC, so a measure of difficulty and no few-shot result",
    licence="MIT",
    extra="litert",
    weights=("deeplabv3-voc",),
)
register_lazily(
    "efficientnet-lite0",
    "hardlook.models.encoders.efficientnet_lite0:EfficientNetLite0",
    role="encoder",
    summary="EfficientNet-Lite0 trained on ImageNet",
    licence="Apache-2.0",
    extra="torch",
    weights=("efficientnet-lite0",),
)
register_lazily(
    "minilm",
    "hardlook.models.text.minilm:MiniLM",
    role="text-encoder",
    summary="all-MiniLM-L6-v2, a six-layer sentence encoder",
    licence="Apache-2.0",
    extra="hf",
    weights=("all-minilm-l6-v2",),
)
register_lazily(
    "clip",
    "hardlook.models.text.clip:Clip",
    role="image-text-encoder",
    summary="CLIP from a local transformers folder (path=FOLDER)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "clip-text",
    "hardlook.models.text.clip:ClipText",
    role="text-encoder",
    summary="CLIP's text tower with a prompt, from a local transformers folder (path=FOLDER)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "bert",
    "hardlook.models.text.transformers_text:Bert",
    role="text-encoder",
    summary="BERT's token vectors, averaged, from a local transformers folder (path=FOLDER)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "gpt2",
    "hardlook.models.text.transformers_text:Gpt2",
    role="text-encoder",
    summary="GPT-2's token vectors, averaged, from a local transformers folder (path=FOLDER)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "t5",
    "hardlook.models.text.transformers_text:T5",
    role="text-encoder",
    summary="T5's encoder, averaged over the tokens, from a local transformers folder (path=FOLDER)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "mobile-sam",
    "hardlook.models.interactive.mobile_sam:MobileSam",
    role="promptable-segmenter",
    summary="MobileSAM: SAM's decoder behind a small image encoder (TinyViT)",
    licence="Apache-2.0",
    extra="torch",
    weights=("mobile-sam",),
)
register_lazily(
    "empty",
    "hardlook.models.one_shot.fixed_masks:Empty",
    role="one-shot-segmenter",
    summary="an empty mask for every query",
    licence="MIT",
)
register_lazily(
    "whole-image",
    "hardlook.models.one_shot.fixed_masks:WholeImage",
    role="one-shot-segmenter",
    summary="every pixel of every query",
    licence="MIT",
)
register_lazily(
    "center-box",
    "hardlook.models.one_shot.fixed_masks:CenterBox",
    role="one-shot-segmenter",
    summary="a box in the middle of every query (share=.5 of its sides)",
    licence="MIT",
)
register_lazily(
    "saliency",
    "hardlook.models.one_shot.saliency:SaliencyOnly",
    role="one-shot-segmenter",
    summary="the query's salient pixels by any saliency model (model=u2netp), whatever the support",
    licence="MIT",
    extra="onnx",
    weights=("u2netp",),
)
register_lazily(
    "prototype",
    "hardlook.models.one_shot.prototype:Prototype",
    role="one-shot-segmenter",
    summary="prototype matching over any encoder's maps (encoder=efficientnet-lite0), no training",
    licence="Apache-2.0",
    extra="torch",
    weights=("efficientnet-lite0",),
)
register_lazily(
    "nearest",
    "hardlook.models.one_shot.nearest:Nearest",
    role="one-shot-segmenter",
    summary="nearest-neighbour matching over any encoder's maps (encoder=efficientnet-lite0), no training",
    licence="Apache-2.0",
    extra="torch",
    weights=("efficientnet-lite0",),
)
register_lazily(
    "clickability",
    "hardlook.models.click_models.clickability.click_model:Clickability",
    role="click-model",
    summary="where people click, learnt: SegNeXt-B that sees the masks too (path=CHECKPOINT)",
    licence="as the checkpoint's own",
    extra="torch",
)
register_lazily(
    "sam",
    "hardlook.models.interactive.transformers_sam:Sam",
    role="promptable-segmenter",
    summary="SAM from a local transformers folder or an authors' checkpoint (path=FOLDER or FILE)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "sam-hq",
    "hardlook.models.interactive.transformers_sam:SamHQ",
    role="promptable-segmenter",
    summary="SAM-HQ from a local transformers folder or an authors' checkpoint (path=FOLDER or FILE)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "sam2",
    "hardlook.models.interactive.sam2:Sam2",
    role="promptable-segmenter",
    summary="SAM 2 and 2.1 from a local transformers folder (path=FOLDER)",
    licence="as the folder's own",
    extra="hf",
)
register_lazily(
    "sam2-onnx",
    "hardlook.models.interactive.sam2_onnx:Sam2Onnx",
    role="promptable-segmenter",
    summary="SAM 2 (tiny) for onnxruntime, three masks at every click",
    licence="BSD-3-Clause",
    extra="onnx",
    weights=("sam2-hiera-tiny",),
)
register_lazily(
    "grabcut",
    "hardlook.models.interactive.grabcut:GrabCut",
    role="promptable-segmenter",
    summary="OpenCV's GrabCut, seeded by the clicks; no weights",
    licence="MIT",
)
register_lazily(
    "random-walker",
    "hardlook.models.interactive.random_walker:RandomWalker",
    role="promptable-segmenter",
    summary="Grady's random walker from the clicks; no weights",
    licence="MIT",
)
register_lazily(
    "ritm-style",
    "hardlook.models.interactive.ritm_style:RitmStyle",
    role="promptable-segmenter",
    summary="any predictor object with RITM's interface (predictor=package.module:factory)",
    licence="as the predictor's own",
)
register_lazily(
    "saliency-clicks",
    "hardlook.models.click_models.saliency:SaliencyClicks",
    role="click-model",
    summary="clicks where any saliency model looks (model=u2netp), within the error",
    licence="MIT",
    extra="onnx",
    weights=("u2netp",),
)
