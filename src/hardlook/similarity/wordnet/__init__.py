"""WordNet 3.0's nouns and the similarity measures over them."""
