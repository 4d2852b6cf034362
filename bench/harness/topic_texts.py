"""Texts of 100 to 300 words with subjects: words by Zipf's law, in part from those of two topics.

Half of a text's words are anybody's, the others of its topics: 3 of 4 of the first one. Which words
a topic has is at random; how often each occurs follows its own order of them.
"""

from __future__ import annotations

from typing import Any

VOCABULARY, LETTERS = 400_000, 5
TOPICS, TOPIC_WORDS = 1_000, 4_000
SHORTEST, LONGEST = 100, 300
PART = 10_000


def make(n: int, seed: int) -> list[str]:
    """Texts; the first of many are those of fewer."""
    import numpy as np

    draw = np.random.default_rng(4)
    letters = draw.integers(ord("a"), ord("z") + 1, (VOCABULARY, LETTERS + 1), np.uint8)
    letters[:, -1] = ord(" ")
    topics = _ranks(draw, (TOPICS, TOPIC_WORDS), VOCABULARY - 100) + 100
    texts: list[str] = []
    for first in range(0, n, PART):
        draw = np.random.default_rng((seed, first))
        sizes = draw.integers(SHORTEST, LONGEST + 1, min(PART, n - first))
        texts += _part(draw, sizes, letters, topics)
    return texts


def _ranks(draw: Any, shape: Any, count: int) -> Any:
    """Places from 0 to before `count`, of which place r is drawn about as 1 / (r + 1)."""
    import numpy as np

    return np.exp(draw.random(shape) * np.log(count)).astype(np.int32)


def _part(draw: Any, sizes: Any, letters: Any, topics: Any) -> list[str]:
    import numpy as np

    shape = len(sizes), LONGEST
    words = _ranks(draw, shape, VOCABULARY)
    kinds = draw.integers(0, 8, shape, np.uint8)
    ours_own = draw.integers(0, TOPICS, (len(sizes), 2))
    own = topics[
        np.where(kinds < 1, ours_own[:, 1:], ours_own[:, :1]), _ranks(draw, shape, TOPIC_WORDS)
    ]
    text = letters[np.where(kinds < 4, own, words)].reshape(len(sizes), -1).tobytes().decode()
    width = LONGEST * (LETTERS + 1)
    return [
        text[row * width : row * width + size * (LETTERS + 1) - 1]
        for row, size in enumerate(sizes.tolist())
    ]
