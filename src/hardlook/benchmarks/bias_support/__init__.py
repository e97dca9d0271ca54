"""Support ablations: what a one-shot model finds when the support misleads it."""
