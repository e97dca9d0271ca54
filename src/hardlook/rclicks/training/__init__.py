"""Training the clickability network: target maps from clicks, samples on a grid, the loop, and its state on disk."""
