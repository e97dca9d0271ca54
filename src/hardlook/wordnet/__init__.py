"""WordNet 3.0's nouns inside the package, and the similarity measures over them.

>>> from hardlook.wordnet import load_nouns
>>> [sense.name for sense in load_nouns().senses("sea lions")]
['sea_lion.n.01']
"""

from hardlook.wordnet.measures import MEASURES, Measure, describe, wordnet_similarity
from hardlook.wordnet.nouns import Nouns, Sense, load_nouns

__all__ = ["MEASURES", "Measure", "Nouns", "Sense", "describe", "load_nouns", "wordnet_similarity"]
