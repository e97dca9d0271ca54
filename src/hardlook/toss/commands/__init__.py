"""The verbs of TOSS: `hardlook bias`, `hardlook build`, `hardlook attributes`."""
