"""The command line: the commands that all systems share; a system's own commands are in its `commands` modules."""
