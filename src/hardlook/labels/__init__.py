"""Label sets with their WordNet senses: the shipped ones, your own files, and help with a new vocabulary.

>>> from hardlook.labels import load_label_set
>>> load_label_set("coco80").find("Mouse").synset, load_label_set("coco80", "published").find("mouse").synset
('mouse.n.04', 'mouse.n.01')
"""

from hardlook.labels.candidates import Candidate, Question, ask_about
from hardlook.labels.label_set import Label, LabelSet
from hardlook.labels.load import load_label_set
from hardlook.labels.lvis import read_lvis_labels
from hardlook.labels.shipped import Difference, ShippedSet, find_differences, list_label_sets
from hardlook.labels.unknown import Placement, Treatment, Unknown, one_edge_below, place, random_vector

__all__ = [
    "Candidate",
    "Difference",
    "Label",
    "LabelSet",
    "Placement",
    "Question",
    "ShippedSet",
    "Treatment",
    "Unknown",
    "ask_about",
    "find_differences",
    "list_label_sets",
    "load_label_set",
    "one_edge_below",
    "place",
    "random_vector",
    "read_lvis_labels",
]
