"""A recipe, and fingerprints by it, of texts and of vectors.

`recipe` and `presets` say how; `fingerprints` does it in blocks by kernels, `plain` a document at a
time in plain Python, `majority` folds; `vectors` projects vectors; `values` has fingerprints as
numbers, `files` as Parquet. `libraries` holds what other libraries do, `explanation` shows it all.
"""
