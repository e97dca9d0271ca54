"""Planted models: they read the truth that the planted world signs its pictures with, and err as their dials say.

A dial goes from 0 to 1 and is the share of decisions it spoils. Which ones is drawn from the picture itself, one
number per decision, so a higher dial spoils what a lower one spoiled and more, in any order and batch.
"""

from __future__ import annotations
