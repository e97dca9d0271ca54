"""What every benchmark on one-shot pairs shares: reading, asking, counting and showing a pair."""
