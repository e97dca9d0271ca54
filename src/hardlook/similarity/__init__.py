"""How alike labels are: label sets with their WordNet senses, measures, and their analysis."""
