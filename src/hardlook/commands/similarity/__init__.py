"""`hardlook similarity`: how alike labels are."""
