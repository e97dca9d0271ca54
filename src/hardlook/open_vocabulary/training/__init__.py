"""Training segmenters of free words: features of a frozen encoder projected into a space of word vectors."""
