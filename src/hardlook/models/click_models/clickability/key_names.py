"""The names that published SegNeXt weights give their tensors, turned into ours.

Ours are MMSegmentation's without what wraps the network. The authors' checkpoint puts `encoder_decoder.` before the
two halves and numbers its only decoder; SegNeXt's first release named the depth filter twice.

>>> renamed("module.encoder_decoder.decode_head.0.conv_seg.weight")
'decode_head.conv_seg.weight'
>>> renamed("encoder_decoder.backbone.block1.0.mlp.dwconv.dwconv.bias")
'backbone.block1.0.mlp.dwconv.bias'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

WRAPPED = re.compile(r"^(module\.)?(encoder_decoder\.)?")
CASCADED = re.compile(r"^decode_head\.0\.")
DOUBLED = ".dwconv.dwconv."
UNWANTED_ENDINGS = ("num_batches_tracked", "decode_head.hamburger.ham.bases")
"""What a file may lack: a count that inference never reads, and bases that some releases draw at every call."""


def renamed(key: str) -> str:
    """Our name for a tensor; one that is ours already, or not known, stays."""
    bare = CASCADED.sub("decode_head.", WRAPPED.sub("", key))
    return bare.replace(DOUBLED, ".dwconv.")


def renamed_state(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state under our names, completed from `wanted` where a file may lack a tensor."""
    given = {renamed(key): value for key, value in state.items()}
    lacking = {key: value for key, value in wanted.items() if key.endswith(UNWANTED_ENDINGS) and key not in given}
    return given | lacking
