"""Networks that turn images into vectors and maps."""
