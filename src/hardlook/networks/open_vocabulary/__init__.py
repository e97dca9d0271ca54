"""Open-vocabulary segmentation networks, each published one in a file of its own, and the CLIP parts they share."""
