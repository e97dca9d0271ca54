"""Training interactive segmentation networks on objects that are clicked as a click model says."""
