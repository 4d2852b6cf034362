"""Blocks of bits to compare, and their cost: `join_plan` for pairs, `search_plan` for a query."""
