"""Networks that label every pixel."""
