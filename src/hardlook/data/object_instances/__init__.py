"""Objects to be segmented by clicks, from every layout that has them."""

from hardlook.data.object_instances.dataset_names import dataset_name
from hardlook.data.object_instances.left_out import LeftOutNote
from hardlook.data.object_instances.listing import InstanceList, list_instances
from hardlook.data.object_instances.longest_side import scaled_points
from hardlook.data.object_instances.object_instance import ObjectInstance, StoredObject

__all__ = [
    "InstanceList",
    "LeftOutNote",
    "ObjectInstance",
    "StoredObject",
    "dataset_name",
    "list_instances",
    "scaled_points",
]
