"""The few-shot zoo: every method trained on the same images with one budget, tested inside and outside contexts."""
