"""The commands of `hardlook collect`."""
