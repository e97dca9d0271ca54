"""`hardlook labels`: label sets and their senses."""
