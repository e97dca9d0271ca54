"""Training of interactive segmentation networks: objects, crops, clicks on errors, losses and recipes."""
