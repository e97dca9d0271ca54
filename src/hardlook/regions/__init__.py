"""Regions of masks: boxes and exact distances, on arrays alone."""
