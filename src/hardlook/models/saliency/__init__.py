"""Networks that say where the eye goes first."""
