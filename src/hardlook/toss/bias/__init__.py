"""The biases behind one-shot scores: class negatives, salience, and which attribute of an image matters."""
