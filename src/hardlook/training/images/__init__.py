"""Training images on the device: crops, flips and colours of a batch at a time."""
