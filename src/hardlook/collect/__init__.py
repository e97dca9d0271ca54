"""Collecting from people: clicks on objects, reviews of candidate images, ratings of similarity."""
