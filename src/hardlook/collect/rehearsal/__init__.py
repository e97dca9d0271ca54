"""A study tried before people come: simulated participants over the real server, every answer accounted for."""
