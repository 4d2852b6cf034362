"""Text to weighted, hashed features, step by step; no step knows the recipe.

The flow: `text` (Arrow blocks) -> `rewrite`, `unicode` (normal forms) -> `tokens` (with
`jieba_words`, `stopwords`) -> `weights` (with `frequency_table`, `keyword_weights`) -> `hashes`.
`choices` names what one may choose.
"""
