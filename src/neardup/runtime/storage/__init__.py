"""Files next to results: whole files, files that grow, temporary rows, checksums."""
