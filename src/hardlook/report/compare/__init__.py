"""Models compared on the same units: how large the differences are, whether they are more than luck, and where."""
