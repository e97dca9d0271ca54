"""MetaCoCo: what context does to few-shot classifiers."""
