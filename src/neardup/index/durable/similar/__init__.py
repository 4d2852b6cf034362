"""The durable index by similarity: its calls, what it follows, what waits for a commit."""
