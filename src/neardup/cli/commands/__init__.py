"""One file for each command: it turns options into values, calls the pipeline once, and prints."""
