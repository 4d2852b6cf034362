"""A recipe, and fingerprints by it, of texts and of vectors.

`recipe` and `preset_recipes` define a fingerprint. `fingerprints` computes blocks of them with
kernels, `plain` computes one document in plain Python, `majority` folds, `projection` projects
vectors. `values` has fingerprints as numbers, `fingerprint_files` as Parquet. `libraries` has the
definitions of other libraries, and `explanation` shows how a fingerprint is made.
"""
