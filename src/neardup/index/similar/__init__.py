"""The index by similarity: every stored document at least so similar, exactly.

`sets` are feature sets one after the other; `incoming` makes them; `segment` and `tail` store and
find them; `queries` answers, `writing` takes, `memory` is the class.
"""
