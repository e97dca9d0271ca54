"""Training few-shot methods on datasets of concepts in contexts: the data, the folder, the page, the command."""
