"""Models: their roles, how they are named and found, and the built-in ones."""
