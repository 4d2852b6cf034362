"""From commit to commit: what waits for one, what one holds, and how the log becomes files."""
