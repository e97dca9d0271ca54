"""Which layers and size of an encoder the matchers use when nobody says.

Mean IoU over 20 classes of 150 random pairs of one class, from 537 images of Pascal VOC (void left out), and the mean
over pairs in brackets; chosen is the last but one, at less than half the time of the last.

| EfficientNet-Lite0 | prototype | nearest |
|---|---|---|
| stride16 at 224 px | .331 (.303) | .247 (.206) |
| stride16+stride32 at 224 px | .346 (.315) | .312 (.259) |
| stride16+head at 320 px | .367 (.337) | .319 (.269) |
| stride16+stride32 at 320 px | .377 (.343) | .347 (.292) |
| stride16+stride32 at 448 px | .386 (.348) | .350 (.315) |

>>> USUAL["efficientnet-lite0"]["layer"]
'stride16+stride32'
"""

USUAL = {"efficientnet-lite0": {"layer": "stride16+stride32", "size": "320"}}
"""Arguments by the encoder's name; what `encoder_args` says goes before them."""
