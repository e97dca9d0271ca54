"""Tiered pair lists for one-shot segmentation: attributes of masks, the rules of the three tiers, and their folders."""
