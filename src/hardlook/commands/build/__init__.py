"""`hardlook build`: tiers of pairs from any images with class masks."""
