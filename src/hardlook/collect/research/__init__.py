"""The researchers' dashboard: how far a study is, how good its answers are, who is left out, and the files to take."""
