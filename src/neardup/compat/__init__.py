"""Other libraries' fingerprints: presets that reproduce them, readers, and drop-in modules."""
