"""Plans: blocks of bits and their cost; `join_plan` for pairs, `search_plan` for a query."""
