"""Searchers for the neighbours of a query: a class for each kind of plan; `build` makes them."""
