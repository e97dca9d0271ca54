"""`wrap`: a network or function that people have, as a model of a role."""

from __future__ import annotations

from hardlook.models.wrapping.wrapped_models import WrappedModel, wrap

__all__ = ["WrappedModel", "wrap"]
