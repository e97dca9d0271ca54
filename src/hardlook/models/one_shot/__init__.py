"""One-shot segmenters that need no training: the floors of every table, and matching over any encoder's maps."""
