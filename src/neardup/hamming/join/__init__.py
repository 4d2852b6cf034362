"""All pairs within a distance, in memory: `join_engine` solves a `problem` and fills `sinks`."""
