"""hardlook: evaluation of vision models whose quality an average hides.

Importing the package costs nothing: torch, polars and the benchmarks load when they are used.

>>> import hardlook
>>> hardlook.__version__.count(".")
2
"""

__version__ = "0.1.0"
