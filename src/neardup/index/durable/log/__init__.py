"""The log of a durable index: commits in an LMDB file, and the folder that it stands in."""
