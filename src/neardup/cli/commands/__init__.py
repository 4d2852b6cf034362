"""One file a command: options into values, one call of the pipeline, what it returns printed."""
