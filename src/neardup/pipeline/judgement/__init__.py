"""What people say of pairs: asked in the browser, kept in a file, taken by a run as given.

`answers` is the file, `strata` says which pair is asked next and what the answers tell of all,
`session` and `texts` hold a review, `page` shows it, `server` serves it to one person; `decisions`
takes answers into a run.
"""
