"""Judgements of people on pairs: made in the browser, stored in a file, used by a run.

`answers` is the file. `review_session` shows pairs of a file; `question_review` shows those of
`candidate_pairs` on which questions disagree, and `learned_question` chooses a question by the
answers. `so_far` is the section of a page about the answers (`neardup.service` serves the page);
`decisions` uses answers in a run.
"""
