"""Compiled loops of the metrics, imported when first called: loading numba takes a second."""
