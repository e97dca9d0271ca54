"""Words of a model's own choosing: phrases, their nouns and senses."""
