"""A run as one JSON document for other tools, with a versioned schema: docs/export.md describes it."""
