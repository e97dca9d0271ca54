"""Semantic projections: what one is to the training loop, and its recipes."""
