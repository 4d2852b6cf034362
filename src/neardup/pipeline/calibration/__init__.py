"""Which threshold, distance and width suit a corpus, told from a random sample of it.

`sample` takes the documents, `measure` joins them exactly, `model` is what is found, `costs` what
each choice takes at full size, `advice` what to do, `calibrate` composes them, `page` draws it.
"""
