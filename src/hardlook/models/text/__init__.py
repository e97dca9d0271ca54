"""Networks that turn texts into vectors."""
