"""A study on disk: its settings, its tasks, its pictures."""
