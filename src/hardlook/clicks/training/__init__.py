"""Training the clickability network: click maps from clicks, samples on a grid, the loop, and its state on disk."""
