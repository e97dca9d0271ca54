"""RITM and SimpleClick prepared for inference on a GPU."""
