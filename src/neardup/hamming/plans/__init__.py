"""Which blocks of bits to compare, at which cost: `join` for all pairs, `search` for a query."""
