"""`hardlook leaderboard`: pages and a terminal."""
