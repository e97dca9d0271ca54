"""Participants, batches and answers in a database: SQLite beside the study, or PostgreSQL."""
