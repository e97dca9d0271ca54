"""The command line: the verbs that all systems share; a system's own verbs are in its commands."""
