"""Runs that are joined from others: what they hold, their settings, and models that are trained per fold."""
