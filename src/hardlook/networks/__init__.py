"""Torch networks and their building blocks; they know nothing of scores."""
