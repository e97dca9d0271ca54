"""Weights: what is known, how it is installed and located, and how files are read without unpickling."""
