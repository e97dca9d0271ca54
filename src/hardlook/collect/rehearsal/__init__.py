"""A study tried out before people come: simulated participants over the real server, and an account of every answer."""
