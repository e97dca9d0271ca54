"""What comes out of a study: clicks.csv, manifests, ratings, and how good it all is."""
