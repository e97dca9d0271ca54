"""Readers of images, masks and the layouts that datasets come in."""
