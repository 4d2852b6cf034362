"""The neighbours of a query: one class of searcher for each kind of plan; `build` makes them."""
