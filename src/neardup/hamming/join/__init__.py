"""All pairs within a distance, in memory: a `problem`, solved by the `engine`, for a sink."""
