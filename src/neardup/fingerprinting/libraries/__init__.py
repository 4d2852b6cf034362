"""Other libraries' fingerprints, bit for bit: one file a family, `table` lists them."""
