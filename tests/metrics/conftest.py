"""Kernels are compiled at their first call; an example must not fail for the seconds that takes."""

from hypothesis import settings

settings.register_profile("compiled kernels", deadline=None)
settings.load_profile("compiled kernels")
