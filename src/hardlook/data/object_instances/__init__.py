"""Object instances for interactive segmentation, listed from every supported dataset layout."""

from __future__ import annotations

from hardlook.data.click_names import normalize_dataset_name
from hardlook.data.left_out import LeftOutNote
from hardlook.data.object_instances.instance import ObjectInstance, StoredObject, scale_points
from hardlook.data.object_instances.listing import InstanceList, list_instances

__all__ = [
    "InstanceList",
    "LeftOutNote",
    "ObjectInstance",
    "StoredObject",
    "list_instances",
    "normalize_dataset_name",
    "scale_points",
]
