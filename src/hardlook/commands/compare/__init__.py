"""`hardlook compare`: from run folders to a page, a file and a terminal."""
