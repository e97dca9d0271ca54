"""TOSS's claims on networks that are trained here: train, run, report. See `python -m toss_study --help`."""
