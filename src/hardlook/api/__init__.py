"""The Python API: what `import hardlook as hl` offers, and what the command line calls."""
