"""Closed mIoU: the harness's own small benchmark, and the tutorial's example."""
