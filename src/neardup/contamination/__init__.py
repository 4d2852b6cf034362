"""Is the test in the training data? Which questions stand in which documents, and where."""
