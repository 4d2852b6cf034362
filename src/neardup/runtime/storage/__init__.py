"""What is written beside results: whole files, files that grow, temporary rows, checksums."""
