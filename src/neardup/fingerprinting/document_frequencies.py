"""Learn document frequencies: one pass over the texts, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.features.frequency_table import SPACE_FIELDS, FrequencyTable, feature_space, summed
from neardup.features.text import text_array
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.fingerprinting.recipe import Recipe, recipe_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DocumentFrequencies", "FrequencyLearner"]

LIMIT: Final = 1 << 23
PENDING: Final = 1 << 22


class DocumentFrequencies(FrequencyTable):
    """A table of document frequencies; equal tables have equal digests.

    Make one with `learn`, `load` or `from_jieba`. A recipe names it by its `digest`, and finds any
    table that this process has made or loaded.

    Attributes:
        documents: How many documents with features were counted; 0 for a table of given values.
        missed: A count is at most this much too low, because rare features were dropped to bound
            memory; 0: all counts are exact.
        space: What made the features, as JSON; None fits every recipe.
        digest: 16 hexadecimal digits that stand for the table.

    Example:
        >>> from neardup import DocumentFrequencies, Recipe, fingerprint
        >>> table = DocumentFrequencies.learn(["a b", "a c"], Recipe(ngram=1))
        >>> table.idf("a"), round(table.idf("b"), 4)
        (1.0, 1.4055)
        >>> recipe = Recipe(ngram=1, weight="tfidf", idf=table.digest)
        >>> fingerprint("a b", recipe) == fingerprint("b", recipe)
        True
    """

    @classmethod
    def learn(
        cls,
        texts: Any,
        recipe: Recipe | None = None,
        *,
        limit: int = LIMIT,
        workers: int | None = None,
    ) -> DocumentFrequencies:
        """Count, in one pass, the texts that have each feature.

        Memory is bounded: whenever more than `limit` features are counted, the rarest are dropped,
        and `missed` says by how much a count can be too low.

        Args:
            texts: As for `neardup.fingerprints`.
            recipe: Makes the features: normalisation, tokens, n, stop words; by default Recipe().
            limit: Most features to keep, 1 or more.
            workers: Number of threads; by default all available processors.

        Raises:
            UsageError: If something in `texts` is not a text, or for a preset.
        """
        learner = FrequencyLearner(recipe_of(recipe), limit, workers)
        for chunk in text_array(texts).chunks:
            learner.add(chunk)
        return learner.finish()


class FrequencyLearner:
    """Learns document frequencies from batches of texts; see `DocumentFrequencies.learn`.

    It holds at most `limit` features and PENDING hashes: about 48 bytes for each.

    Example:
        >>> import pyarrow as pa
        >>> learner = FrequencyLearner(Recipe(ngram=1))
        >>> learner.add(pa.array(["a b", "a c"], pa.large_string()))
        >>> len(learner.finish())
        3
    """

    def __init__(self, recipe: Recipe, limit: int = LIMIT, workers: int | None = None) -> None:
        """Count nothing yet."""
        if recipe.preset is not None:
            raise UsageError(f"preset is {recipe.preset}: document frequencies need a recipe")
        if not isinstance(limit, int) or limit < 1:
            raise UsageError(f"limit is {limit!r:.60}: keep 1 feature or more")
        self._recipe = Recipe(**{name: getattr(recipe, name) for name in SPACE_FIELDS})
        self._limit, self._workers = limit, workers
        self._space = feature_space(recipe)
        self._pending: list[Any] = []
        self._pending_size = 0
        self._keys, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._documents = self._missed = 0

    def add(self, texts: pa.Array) -> None:
        """Count a large-string array of texts; those without features do not count."""
        with Fingerprinter(self._recipe, self._workers, self) as fingerprinter:
            fingerprinter.add(texts)
            empty = np.ma.getmaskarray(fingerprinter.finish())[:, 0]
        self._documents += int(empty.size - empty.sum())

    def take(self, features: Any) -> None:
        """Take the distinct feature hashes of the next documents; uint64."""
        self._pending.append(features.copy())
        self._pending_size += features.size
        while self._pending_size >= PENDING:
            waiting = np.concatenate(self._pending)
            self._count(waiting[:PENDING])
            self._pending = [waiting[PENDING:]]
            self._pending_size -= PENDING

    def finish(self) -> DocumentFrequencies:
        """Give the table of all that was added."""
        self._count_pending()
        if not self._documents:
            raise UsageError("no text has a feature: there are no document frequencies to learn")
        return DocumentFrequencies(
            self._keys, self._counts, self._documents, self._missed, self._space
        )

    def _count_pending(self) -> None:
        if self._pending_size:
            self._count(np.concatenate(self._pending))
            self._pending, self._pending_size = [], 0

    def _count(self, hashes: Any) -> None:
        keys, counts = np.unique(hashes, return_counts=True)
        self._keys, self._counts = summed(
            np.concatenate([self._keys, keys]), np.concatenate([self._counts, counts])
        )
        if self._keys.size > self._limit:
            rank = self._keys.size - self._limit - 1
            dropped = int(np.partition(self._counts, rank)[rank])
            kept = self._counts > dropped
            self._keys, self._counts = self._keys[kept], self._counts[kept]
            self._missed += dropped
