"""The planted world: small pictures whose whole truth is known, made from a seed, with nothing to download."""
