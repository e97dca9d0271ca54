"""Open PQ: panoptic segmentation scored by how wrong a wrong label is."""
