"""Concepts in contexts: how strongly the two go together in a dataset, and datasets where that is chosen."""
