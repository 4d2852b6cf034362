"""What both kinds of index share: rows with ids, what is held at one moment, how it is changed.

`rows` can be removed, `tail` has the newest, `held` is a moment, `writing` makes the next one.
"""
