"""Open mIoU: semantic segmentation scored by how wrong a wrong label is."""
