"""The durable index by similarity."""
