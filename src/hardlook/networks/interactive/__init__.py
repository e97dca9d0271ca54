"""Interactive segmentation networks: each published one in a file of its own, and what drives them.

Every module of this package but this one imports torch.
"""

from __future__ import annotations
