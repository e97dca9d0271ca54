"""`hardlook data`: datasets of concepts in contexts, inspected, measured and made."""
