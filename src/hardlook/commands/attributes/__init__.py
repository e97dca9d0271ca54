"""`hardlook attributes`: what is easy, salient, large or crowded in a dataset."""
