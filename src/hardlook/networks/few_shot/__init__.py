"""Trainable few-shot methods, one per file; `methods.csv` lists them.

Every module of this package but this one imports torch.
"""

from __future__ import annotations
