"""Promptable segmenters: an image is opened once, then clicks are answered."""
