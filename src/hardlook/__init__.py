"""hardlook: evaluation of vision models whose quality an average hides.

Importing the package costs nothing: torch, polars and the benchmarks load when they are used.

>>> import hardlook
>>> hardlook.__version__.count(".")
2
"""

import sys

from hardlook.moved import MovedModules

__version__ = "0.2.0"
__all__ = ["__version__"]

sys.meta_path.append(MovedModules())
