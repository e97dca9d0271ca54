"""People's clicks: read from files or simulated, and compared with one another."""
