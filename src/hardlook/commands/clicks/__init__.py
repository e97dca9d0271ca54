"""`hardlook clicks`: click models shown, judged against people's clicks, and trained; instances that clicks decide."""
