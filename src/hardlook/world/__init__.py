"""The planted world: small synthetic scenes with complete ground truth, generated from a seed without downloads."""
