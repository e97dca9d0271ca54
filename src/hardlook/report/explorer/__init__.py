"""The explorer: pages over runs that are too large for one page, served to this machine alone."""
