"""Networks that turn images or texts into vectors."""
