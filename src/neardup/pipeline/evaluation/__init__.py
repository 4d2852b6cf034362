"""How well recipes, thresholds and distances find what people labelled.

`labels` reads what is true, `scores` compares, `resampled` gives the intervals, `model` is what is
found, `evaluate` composes them, `page` draws it.
"""
