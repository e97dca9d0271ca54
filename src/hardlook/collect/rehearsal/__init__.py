"""Rehearsal of a study: simulated participants use the real server, and every answer is audited."""
