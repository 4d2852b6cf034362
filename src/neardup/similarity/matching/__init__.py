"""The walk over the documents: the index that it fills, and how it goes on in threads."""
