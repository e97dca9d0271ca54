"""`hardlook collect`: studies with people, made, served, watched and exported."""
