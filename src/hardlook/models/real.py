"""Networks with weights of their own, registered without importing what they run on.

Licences are those of the weights. `weights` are names for `hardlook weights install`.

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
