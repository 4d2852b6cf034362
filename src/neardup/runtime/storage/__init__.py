"""Storage: whole files, append-only files, temporary rows and checksums."""
