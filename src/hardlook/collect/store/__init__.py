"""What people did, in a database: SQLite beside the study, or PostgreSQL."""
