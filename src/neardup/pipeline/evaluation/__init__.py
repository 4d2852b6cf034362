"""Evaluation of recipes, thresholds and distances against labels of people.

`labels` reads the labels, `scorecard` compares with them, `resampled` gives the intervals, and
`evaluate` composes these.
"""
