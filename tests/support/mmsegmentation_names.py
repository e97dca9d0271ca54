"""Names and shapes of the tensors of RClicks' checkpoint, from MMSegmentation's module structure (facts, no weights).

The whole network is `SegNeXtSaliency`: `maps_transform` (a Sequential) and `encoder_decoder`, a cascade with one
LightHamHead (group normalisation, fixed bases) on MSCAN (batch normalisation).
"""

DIMS, DEPTHS, RATIOS, HEAD, RANK = (64, 128, 320, 512), (3, 3, 12, 3), (8, 8, 4, 4), 512, 16


def conv(name, outputs, inputs, *kernel, bias=True):
    yield f"{name}.weight", (outputs, inputs, *kernel)
    if bias:
        yield f"{name}.bias", (outputs,)


def batch_norm(name, channels):
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (channels,)
    yield f"{name}.num_batches_tracked", ()


def affine(name, channels):
    yield f"{name}.weight", (channels,)
    yield f"{name}.bias", (channels,)


def block(name, c, wide):
    yield f"{name}.layer_scale_1", (c,)
    yield f"{name}.layer_scale_2", (c,)
    yield from batch_norm(f"{name}.norm1", c)
    yield from conv(f"{name}.attn.proj_1", c, c, 1, 1)
    unit = f"{name}.attn.spatial_gating_unit"
    yield from conv(f"{unit}.conv0", c, 1, 5, 5)
    for number, length in enumerate((7, 11, 21)):
        yield from conv(f"{unit}.conv{number}_1", c, 1, 1, length)
        yield from conv(f"{unit}.conv{number}_2", c, 1, length, 1)
    yield from conv(f"{unit}.conv3", c, c, 1, 1)
    yield from conv(f"{name}.attn.proj_2", c, c, 1, 1)
    yield from batch_norm(f"{name}.norm2", c)
    yield from conv(f"{name}.mlp.fc1", wide, c, 1, 1)
    yield from conv(f"{name}.mlp.dwconv", wide, 1, 3, 3)
    yield from conv(f"{name}.mlp.fc2", c, wide, 1, 1)


def backbone(prefix=""):
    """MSCAN-B, as its ImageNet file names it without a prefix."""
    yield from conv(f"{prefix}patch_embed1.proj.0", DIMS[0] // 2, 3, 3, 3)
    yield from batch_norm(f"{prefix}patch_embed1.proj.1", DIMS[0] // 2)
    yield from conv(f"{prefix}patch_embed1.proj.3", DIMS[0], DIMS[0] // 2, 3, 3)
    yield from batch_norm(f"{prefix}patch_embed1.proj.4", DIMS[0])
    for stage, (channels, depth, ratio) in enumerate(zip(DIMS, DEPTHS, RATIOS, strict=True), 1):
        if stage > 1:
            yield from conv(f"{prefix}patch_embed{stage}.proj", channels, DIMS[stage - 2], 3, 3)
            yield from batch_norm(f"{prefix}patch_embed{stage}.norm", channels)
        for number in range(depth):
            yield from block(f"{prefix}block{stage}.{number}", channels, channels * ratio)
        yield from affine(f"{prefix}norm{stage}", channels)


def decode_head(prefix):
    yield from conv(f"{prefix}conv_seg", 1, HEAD, 1, 1)
    yield from conv(f"{prefix}squeeze.conv", HEAD, sum(DIMS), 1, 1, bias=False)
    yield from affine(f"{prefix}squeeze.gn", HEAD)
    yield from conv(f"{prefix}hamburger.ham_in.conv", HEAD, HEAD, 1, 1)
    yield f"{prefix}hamburger.ham.bases", (1, HEAD, RANK)
    yield from conv(f"{prefix}hamburger.ham_out.conv", HEAD, HEAD, 1, 1, bias=False)
    yield from affine(f"{prefix}hamburger.ham_out.gn", HEAD)
    yield from conv(f"{prefix}align.conv", HEAD, HEAD, 1, 1, bias=False)
    yield from affine(f"{prefix}align.gn", HEAD)


def published_checkpoint():
    """{name: shape} of the authors' file."""
    names = dict(conv("maps_transform.0", 16, 2, 1, 1))
    names |= conv("maps_transform.2", 16, 16, 3, 3)
    names |= conv("maps_transform.4", DIMS[0], 16, 3, 3)
    names["maps_transform.5.scale"] = (1,)
    names |= backbone("encoder_decoder.backbone.")
    names |= decode_head("encoder_decoder.decode_head.0.")
    return names
