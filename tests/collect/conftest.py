"""Databases to collect into, a file and a server."""

from postgres import database_url, postgres_url

__all__ = ["database_url", "postgres_url"]
