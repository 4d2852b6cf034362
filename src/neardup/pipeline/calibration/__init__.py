"""The question, threshold, distance and width that suit a corpus, judged by a random sample.

`sample` takes the documents, `measure` joins them exactly, `model` is the result, `costs` estimates
each choice at full size, `advice` recommends one, `calibrate` composes these, `page` draws them.
For whole questions `edits` plants copies, `trials` searches for them, `choice` decides, and
`questions` composes these.
"""
