"""TOSS: tiered one-shot segmentation."""
