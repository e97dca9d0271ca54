"""Saliency bias: salient against other targets, and SSSI, the suppression of what is salient before predicting."""
