"""Segmenters of free words, trained on Pascal VOC: what Open mIoU says of their words. `commands` has the commands."""
