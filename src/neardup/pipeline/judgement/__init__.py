"""Judgements of people on pairs: asked in the browser, kept in a file, used by a run.

`answers` is the file. `review_session` shows pairs of a file; `question_review` shows those of
`candidate_pairs` on which questions disagree, and `learned_question` says which question the
answers choose. `so_far` is what a page says of the answers (`neardup.service` serves the page);
`decisions` takes answers into a run.
"""
