"""Readers of images, masks, annotations and the layouts of datasets."""
