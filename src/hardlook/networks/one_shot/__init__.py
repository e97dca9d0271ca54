"""One-shot segmentation networks: each published one in a file of its own, by one interface."""
