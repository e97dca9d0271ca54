"""`hardlook run`: its flags, its default model, one unit, several models."""
