"""Sources of images and class masks: VOC's devkit, folders, binary masks, FSS-1000, COCO."""

from hardlook.data.class_masks.coco import open_coco
from hardlook.data.class_masks.fss1000 import open_fss
from hardlook.data.class_masks.opening import open_class_masks
from hardlook.data.class_masks.protocol import ClassMask, ClassMasks

__all__ = ["ClassMask", "ClassMasks", "open_class_masks", "open_coco", "open_fss"]
