"""Few-shot tasks from images with two labels, a concept and a context: who can take part, and what is drawn."""
