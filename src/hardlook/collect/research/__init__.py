"""The researchers' dashboard: progress, quality of the answers, exclusions, and the export."""
