"""Numbers from arrays: no files, no models, nothing else of ours."""
