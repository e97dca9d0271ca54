"""Open metrics: mIoU, AP and PQ where a wrong label is scored by how wrong it is."""
