"""What a context looks like: seeded operations on images, named after what they show."""

from hardlook.contexts.looks.apply import LOOKS, WITH_MASKS, dress

__all__ = ["LOOKS", "WITH_MASKS", "dress"]
