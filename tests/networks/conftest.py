from tiny_clickability import always_on_one_thread, tiny

__all__ = ["always_on_one_thread", "tiny"]
