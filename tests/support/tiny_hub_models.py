"""Small networks of many families with random weights, written to folders as the model hub holds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers_folders import write_tokenizer

SIDE = 32
CLASSES = {0: "cat", 1: "dog", 2: "sky"}
LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}
MARKS = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
TEXT = {"vocab_size": 16, "max_position_embeddings": 24, **MARKS, **LAYERS}
SIGHT = {"image_size": SIDE, "patch_size": 8, **LAYERS}
SWIN = {
    "model_type": "swin",
    "image_size": SIDE,
    "embed_dim": 8,
    "depths": [1, 1, 1, 1],
    "num_heads": [1, 1, 2, 2],
    "window_size": 2,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}
RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 16, 16],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}
SQUARE = {"size": {"height": SIDE, "width": SIDE}}
SHORTEST = {"size": {"shortest_edge": 2 * SIDE, "longest_edge": 4 * SIDE}}
LARGER = {"size": {"height": 2 * SIDE, "width": 3 * SIDE}}
COLOURS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
PROCESSORS = {
    "clip": ("CLIPImageProcessor", {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}),
    "siglip": ("SiglipImageProcessor", SQUARE),
    "siglip2": ("Siglip2ImageProcessor", {"patch_size": 8, "max_num_patches": 16}),
    "dinov2": ("BitImageProcessor", {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}),
    "dinov3_vit": ("DINOv3ViTImageProcessorFast", {**SQUARE, "resample": 2, **COLOURS}),
    "vit": ("ViTImageProcessor", SQUARE),
    "resnet": ("ConvNextImageProcessor", {"size": {"shortest_edge": SIDE}, "crop_pct": 0.875}),
    "convnext": ("ConvNextImageProcessor", {"size": {"shortest_edge": SIDE}, "crop_pct": 0.875}),
    "segformer": ("SegformerImageProcessor", SQUARE),
    "upernet": ("SegformerImageProcessor", SQUARE),
    "dpt": ("DPTImageProcessor", SQUARE),
    "maskformer": ("MaskFormerImageProcessor", SHORTEST),
    "mask2former": ("Mask2FormerImageProcessor", SHORTEST),
    "oneformer": (
        "OneFormerImageProcessor",
        {**SHORTEST, "class_info_file": "none.json", "repo_path": "nobody/nothing"},
    ),
    "detr": ("DetrImageProcessor", SHORTEST),
    "deformable_detr": ("DeformableDetrImageProcessor", SHORTEST),
    "clipseg": ("ViTImageProcessor", SQUARE),
    "owlvit": ("OwlViTImageProcessor", SQUARE),
    "owlv2": ("Owlv2ImageProcessor", SQUARE),
    "grounding-dino": ("GroundingDinoImageProcessor", LARGER),
}


def make_network(family: str) -> Any:
    """A network of the family with weights of seed 0."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = MAKERS[family](transformers)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # first weights of some heads are near nought, and answers then equal
        for name, value in network.named_parameters():
            if value.ndim > 1 and "relative_position" not in name:
                value.copy_(torch.randn(value.shape, generator=generator) / value[0].numel() ** 0.5)
    return network.eval()


def write_hub_folder(folder: Path, family: str) -> Path:
    """The network of a family, its image processor's settings, and a tokenizer where it reads texts."""
    make_network(family).save_pretrained(folder)
    kind, settings = PROCESSORS[family]
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": kind, **settings}))
    if family in ("clip", "siglip", "siglip2", "clipseg", "owlvit", "owlv2", "oneformer"):
        write_tokenizer(folder, start="[START]", end="[END]")
    if family == "grounding-dino":
        write_bert_tokenizer(folder)
    return folder


def write_bert_tokenizer(folder: Path) -> None:
    """A tokenizer with BERT's numbers for its marks and the full stop, which Grounding DINO knows by number."""
    tokenizers, transformers = pytest.importorskip("tokenizers"), pytest.importorskip("transformers")
    words = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, ".": 1012, "?": 1029, "cat": 7, "dog": 8, "red": 9}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def _make_detr(t: Any, kind: str, config: str, **more: Any) -> Any:
    settings = {
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 8,
        "num_queries": 6,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
        "id2label": CLASSES,
        "backbone_config": t.ResNetConfig(
            **{k: v for k, v in RESNET.items() if k != "model_type"} | more.pop("backbone", {})
        ),
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
        "backbone": None,
    }
    return getattr(t, kind)(getattr(t, config)(**settings | more))


def _make_universal(t: Any, kind: str) -> Any:
    if kind == "maskformer":
        config = t.MaskFormerConfig(
            backbone_config=t.SwinConfig(**{k: v for k, v in SWIN.items() if k != "model_type"}),
            decoder_config=t.DetrConfig(
                d_model=32,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=16,
                decoder_ffn_dim=16,
                num_queries=6,
            ),
            fpn_feature_size=32,
            mask_feature_size=32,
            id2label=CLASSES,
        )
        return t.MaskFormerForInstanceSegmentation(config)
    settings = {
        "backbone_config": t.SwinConfig(**{k: v for k, v in SWIN.items() if k != "model_type"}),
        "hidden_dim": 32,
        "num_attention_heads": 2,
        "dim_feedforward": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "num_queries": 6,
        "id2label": CLASSES,
    }
    if kind == "mask2former":
        config = t.Mask2FormerConfig(
            **settings,
            feature_size=32,
            mask_feature_size=32,
            encoder_feedforward_dim=16,
            feature_strides=[4, 8, 16, 32],
        )
        return t.Mask2FormerForUniversalSegmentation(config)
    config = t.OneFormerConfig(
        **settings,
        conv_dim=32,
        mask_dim=32,
        encoder_feedforward_dim=16,
        query_dec_layers=1,
        task_seq_len=77,
        text_encoder_width=32,
        text_encoder_context_length=77,
        text_encoder_num_layers=1,
        text_encoder_vocab_size=16,
        text_encoder_proj_layers=1,
        is_training=False,
    )
    return t.OneFormerForUniversalSegmentation(config)


def _make_grounding_dino(t: Any) -> Any:
    swin = t.SwinConfig(
        **{k: v for k, v in SWIN.items() if k not in ("model_type", "out_features")}, out_indices=[2, 3, 4]
    )
    text = t.BertConfig(vocab_size=1030, max_position_embeddings=64, **LAYERS)
    return t.GroundingDinoForObjectDetection(
        t.GroundingDinoConfig(
            backbone_config=swin,
            text_config=text,
            d_model=32,
            encoder_layers=1,
            decoder_layers=2,
            num_queries=9,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            max_text_len=16,
            use_timm_backbone=False,
            backbone=None,
        )
    )


MAKERS: dict[str, Any] = {
    "clip": lambda t: t.CLIPModel(t.CLIPConfig(text_config=TEXT, vision_config=SIGHT, projection_dim=12)),
    "siglip": lambda t: t.SiglipModel(t.SiglipConfig(text_config={**TEXT, "projection_size": 16}, vision_config=SIGHT)),
    "siglip2": lambda t: t.Siglip2Model(
        t.Siglip2Config(
            text_config={**TEXT, "projection_size": 16}, vision_config={"num_patches": 16, "patch_size": 8, **LAYERS}
        )
    ),
    "dinov2": lambda t: t.Dinov2Model(t.Dinov2Config(**SIGHT)),
    "dinov3_vit": lambda t: t.DINOv3ViTModel(t.DINOv3ViTConfig(**SIGHT, num_register_tokens=2)),
    "vit": lambda t: t.ViTForImageClassification(t.ViTConfig(**SIGHT)),
    "resnet": lambda t: t.ResNetModel(t.ResNetConfig(**{k: v for k, v in RESNET.items() if k != "model_type"})),
    "convnext": lambda t: t.ConvNextModel(t.ConvNextConfig(hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1])),
    "segformer": lambda t: t.SegformerForSemanticSegmentation(
        t.SegformerConfig(hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], decoder_hidden_size=16, id2label=CLASSES)
    ),
    "upernet": lambda t: t.UperNetForSemanticSegmentation(
        t.UperNetConfig(
            backbone_config=t.ResNetConfig(**{k: v for k, v in RESNET.items() if k != "model_type"}),
            hidden_size=16,
            use_auxiliary_head=False,
            pool_scales=[1, 2],
            id2label=CLASSES,
        )
    ),
    "dpt": lambda t: t.DPTForSemanticSegmentation(
        t.DPTConfig(
            **{**SIGHT, "num_hidden_layers": 4},
            is_hybrid=False,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[8, 8, 8, 8],
            fusion_hidden_size=16,
            use_auxiliary_head=False,
            id2label=CLASSES,
            reassemble_factors=[4, 2, 1, 0.5],
        )
    ),
    "maskformer": lambda t: _make_universal(t, "maskformer"),
    "mask2former": lambda t: _make_universal(t, "mask2former"),
    "oneformer": lambda t: _make_universal(t, "oneformer"),
    "detr": lambda t: _make_detr(t, "DetrForSegmentation", "DetrConfig"),
    "deformable_detr": lambda t: _make_detr(
        t,
        "DeformableDetrForObjectDetection",
        "DeformableDetrConfig",
        num_feature_levels=3,
        decoder_layers=2,
        backbone={"out_features": ["stage2", "stage3", "stage4"]},
    ),
    "clipseg": lambda t: t.CLIPSegForImageSegmentation(
        t.CLIPSegConfig(
            text_config=TEXT,
            vision_config=SIGHT,
            projection_dim=12,
            extract_layers=[0, 1],
            reduce_dim=8,
            decoder_num_attention_heads=2,
            decoder_intermediate_size=16,
        )
    ),
    "owlvit": lambda t: t.OwlViTForObjectDetection(
        t.OwlViTConfig(text_config=TEXT, vision_config=SIGHT, projection_dim=16)
    ),
    "owlv2": lambda t: t.Owlv2ForObjectDetection(
        t.Owlv2Config(text_config=TEXT, vision_config=SIGHT, projection_dim=16)
    ),
    "grounding-dino": _make_grounding_dino,
}
