"""How well recipes, thresholds and distances find what people labelled.

`labels` reads the labels, `scorecard` compares with them, `resampled` gives the intervals, and
`evaluate` composes these.
"""
