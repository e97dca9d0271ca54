"""`hardlook bias`: the biases behind one-shot scores."""
