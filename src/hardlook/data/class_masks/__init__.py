"""Images with class masks: the Pascal VOC devkit, folders of masks, FSS-1000 and COCO."""

from __future__ import annotations

from hardlook.data.class_masks.coco import open_coco
from hardlook.data.class_masks.folders import open_class_mask_folders
from hardlook.data.class_masks.fss1000 import open_fss
from hardlook.data.class_masks.source import ClassMask, ClassMaskSource

__all__ = ["ClassMask", "ClassMaskSource", "open_class_mask_folders", "open_coco", "open_fss"]
