"""Open AP: instance segmentation and detection scored by how wrong a wrong label is."""
