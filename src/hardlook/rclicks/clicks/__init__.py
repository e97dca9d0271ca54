"""Simulated clicks on objects: where the next click falls, who makes it, and which mask a segmenter returns."""
