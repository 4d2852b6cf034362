"""Files as bytes: finding, reading, compressing and writing them, here or behind a URI."""
