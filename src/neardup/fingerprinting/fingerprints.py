"""Fold weighted feature hashes into fingerprints, and measure how far two fingerprints are apart.

Source: Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002; Manku, Jain
and Das Sarma, Detecting near-duplicates for web crawling, WWW 2007, section 3.
"""

from __future__ import annotations

import contextlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np

from neardup.documents.markup import warn_of_markup
from neardup.errors import UsageError
from neardup.features.hashes import expanded, find_hash, spread
from neardup.features.rewrite import rewritten
from neardup.features.text import TextBlock, one_block, text_array, text_blocks
from neardup.features.tokens import NO_TABLE, cutting, in_kernel, stop_table
from neardup.fingerprinting.recipe import Recipe, recipe_of
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from neardup.kernels.fingerprinting.fold_arguments import Folding, Weighing, Work

__all__ = [
    "Fingerprinter",
    "Spool",
    "codes_of_texts",
    "feature_hashes",
    "fingerprint",
    "fingerprint_one",
    "fingerprints",
]

BLOCK_BYTES: Final = 4 << 20
"""What a thread takes of a long text column: it waits for Python's lock several times a block."""
_LEAST_BLOCK_BYTES: Final = 1 << 20

LEAST_WAITING, MOST_WAITING = 32 << 20, 256 << 20
"""Bytes of text that wait for a thread: two blocks for each keep all busy, within these limits."""

KEPT_BYTES: Final = 1 << 18
"""The longest text whose working memory, some 300 bytes of address space a byte, serves others."""
_BYTES_A_FEATURE: Final = 4

PREPARED_RECIPES: Final = 64
_FOR_FINGERPRINTS: Final[dict[int, _Prepared]] = {}
_FOR_FEATURES: Final[dict[int, _Prepared]] = {}
"""What was prepared for recipes, by their id: to hash a recipe takes as long as a short text. Each
holds its recipe, so that no other gets its id."""

_WEIGHT_CODES: Final = {"set": 0, "count": 1, "log": 2, "tfidf": 3}


def fingerprint(text: str, recipe: Recipe | None = None) -> int | None:
    """Fingerprint one text; None if it has no tokens.

    Args:
        text: The document. A lone surrogate counts as U+FFFD.
        recipe: The recipe; by default Recipe().

    Returns:
        An int below 2**bits, or None.

    Raises:
        UsageError: If it is not a str.
        RecipeError: If it is not a recipe, or its document frequencies are not loaded.

    Example:
        >>> from neardup import distance, fingerprint
        >>> one = fingerprint("the quick brown fox jumps over the lazy dog")
        >>> distance(one, fingerprint("The quick brown fox -- jumps over the lazy dog!"))
        0
    """
    try:  # As `_Prepared.place_for`: for six words a call of it is a tenth of the time.
        prepared = _FOR_FINGERPRINTS[id(recipe)]
        place = prepared.places.pop()
    except LookupError:
        prepared = _prepare(recipe)
        place = prepared.make()
    if not isinstance(text, str) or (len(text) > prepared.most and not prepared.is_short(text)):
        prepared.places.append(place)
        return _as_int(_fingerprint_as_block(text, prepared.recipe))
    value: int | None = prepared.kernel(text, place[0])
    if value is not None and prepared.is_wide:
        value = _as_int(place[1])
    prepared.places.append(place)
    return value


def fingerprint_one(text: str, recipe: Recipe) -> Any:
    """Fingerprint one text without starting a thread; uint64 (width,), None without tokens.

    Raises:
        UsageError: If it is not a text.
    """
    prepared = _prepare(recipe)
    place = prepared.place_for(text)
    if place is None:
        return _fingerprint_as_block(text, recipe)
    address, words, _, _ = place
    codes = None if prepared.kernel(text, address) is None else words.copy()
    prepared.places.append(place)
    return codes


def feature_hashes(text: str, recipe: Recipe) -> Any:
    """The distinct feature hashes of one text; uint64, ascending; empty without tokens.

    Raises:
        UsageError: If it is not a text, or the recipe has no features.

    Example:
        >>> len(feature_hashes("one two three four", Recipe()))
        2
    """
    prepared = _prepare(recipe, keep_features=True)
    place = prepared.place_for(text)
    if place is None:
        values, counts = np.zeros((1, recipe.words), np.uint64), np.zeros(1, np.int64)
        return np.unique(fingerprint_block(one_block(text), recipe, values, counts, True))
    address, _, hashes, _ = place
    count = prepared.kernel(text, address) or 0
    features = hashes[:count].copy()
    prepared.places.append(place)
    return features


def _fingerprint_as_block(text: str, recipe: Recipe) -> Any:
    values, counts = np.zeros((1, recipe.words), np.uint64), np.zeros(1, np.int64)
    fingerprint_block(one_block(text), recipe, values, counts)
    return values[0] if counts[0] else None


def _as_int(codes: Any) -> int | None:
    return None if codes is None else int.from_bytes(codes.astype("<u8").tobytes(), "little")


class _Prepared:
    """The state of fingerprinting one text, and the arrays that do not change with the text."""

    __slots__ = ("is_wide", "kernel", "make", "most", "places", "recipe")

    def __init__(self, recipe: Recipe, keep_features: bool) -> None:
        self.recipe, self.is_wide = recipe, recipe.bits > 64
        self.kernel: Any = None
        self.make: Callable[[], Any] = lambda: None
        self.most = -1
        # Taken from and put back, so that nothing is shared: not by threads, nor by a signal's
        # handler with what it interrupts.
        self.places: list[Any] = []
        rewrites = any((recipe.language, recipe.fold_chinese, recipe.ignore))
        if rewrites or not _has_kernel(recipe) or recipe.hash != "xxh3" or _weighing(recipe):
            return
        from neardup.kernels.fingerprinting.fold_arguments import Folding
        from neardup.kernels.fingerprinting.one import MOST_BYTES, fingerprint_text, workplace

        weight, seed = _WEIGHT_CODES[recipe.weight], np.uint64(recipe.seed)
        folding = Folding(weight, seed, recipe.tie == "one", keep_features)
        cut = cutting(recipe, recipe.tokens == "chars", recipe.ngram)
        self.kernel, self.make = fingerprint_text(), lambda: workplace(cut, folding, recipe.bits)
        self.most = MOST_BYTES // 4

    def is_short(self, text: str) -> bool:
        """Whether a workplace has room for a text: of `most` characters, or four times of ASCII."""
        return len(text) <= self.most or (len(text) <= 4 * self.most and text.isascii())

    def place_for(self, text: str) -> Any:
        """A workplace of the caller's own, until it is put back; None for `fingerprint_block`."""
        if not isinstance(text, str) or not self.is_short(text):
            return None
        try:
            return self.places.pop()
        except IndexError:
            return self.make()


def _prepare(recipe: Recipe | None, *, keep_features: bool = False) -> _Prepared:
    recipes = _FOR_FEATURES if keep_features else _FOR_FINGERPRINTS
    if (known_recipe := recipes.get(id(recipe))) is not None:
        return known_recipe
    if len(recipes) >= PREPARED_RECIPES:
        recipes.clear()
    prepared = recipes[id(recipe)] = _Prepared(recipe_of(recipe), keep_features)
    return prepared


def fingerprints(
    texts: Any,
    recipe: Recipe | None = None,
    workers: int | None = None,
    *,
    progress: Callable[[int], object] | None = None,
) -> Any:
    """Fingerprint many texts.

    Args:
        texts: A sequence of str or None, or strings in Arrow form: `string`, `large_string`,
            `string_view`, dictionary; chunked and sliced; a pandas or polars series.
        recipe: The recipe; by default Recipe().
        workers: Number of threads; by default all available processors.
        progress: Called with the bytes of each chunk of text that is queued.

    Returns:
        uint64, shape (n, ceil(bits / 64)), low word first, unused bits 0. Where a text is null or
        has no tokens, it is a masked array with that row masked.

    Raises:
        UsageError: If something in `texts` is not a text.

    Warns:
        DoubtfulResultWarning: If most of the first texts begin like HTML.

    Example:
        >>> fingerprints(["one two three four", ""]).mask.tolist()
        [[False], [True]]
    """
    return codes_of_texts(texts, recipe_of(recipe), workers, progress=progress, see=warn_of_markup)


def codes_of_texts(
    texts: Any,
    recipe: Recipe,
    workers: int | None = None,
    *,
    progress: Callable[[int], object] | None = None,
    see: Callable[..., object] | None = None,
) -> Any:
    """As `fingerprints`; `see` is called with the texts, some large-string arrays of Arrow."""
    chunks = text_array(texts).chunks
    if see is not None:
        see(*chunks)
    share = sum(chunk.nbytes for chunk in chunks) // worker_count(workers)
    block_bytes = min(max(share, _LEAST_BLOCK_BYTES), BLOCK_BYTES)
    with Fingerprinter(recipe, workers, block_bytes=block_bytes) as fingerprinter:
        for chunk in chunks:
            fingerprinter.add(chunk)
            if progress:
                progress(chunk.nbytes)
        return fingerprinter.finish()


class Spool(Protocol):
    """A receiver of the distinct feature hashes of every document, in document order."""

    def take(self, features: Any) -> Callable[[], object] | None:
        """Take the hashes of the next documents; uint64, whose memory is used again afterwards.

        Calls come in order, one at a time, from several threads.

        Returns:
            What is left to do in the thread that called, while others take theirs; or None.
        """


class Fingerprinter:
    """Fingerprints batches of texts in threads while the caller reads the next one.

    Args:
        recipe: How.
        workers: Number of threads; by default all available processors.
        spool: Where the distinct feature hashes of every document go, if they are wanted.
        block_bytes: About how much text a thread takes at a time.

    Example:
        >>> import pyarrow as pa
        >>> with Fingerprinter(Recipe()) as fingerprinter:
        ...     fingerprinter.add(pa.array(["one", "two"], pa.large_string()))
        ...     fingerprinter.finish().shape
        (2, 1)
    """

    def __init__(
        self, recipe: Recipe, workers: int | None = None, spool: Spool | None = None,
        *, block_bytes: int = BLOCK_BYTES,
    ) -> None:  # fmt: skip
        """Start no thread yet."""
        self._spool = spool
        self._recipe = recipe
        threads = worker_count(workers)
        self._pool = ThreadPoolExecutor(threads)
        self._block_bytes = block_bytes
        self._most_waiting = min(max(LEAST_WAITING, 2 * threads * block_bytes), MOST_WAITING)
        self._works = _Works(recipe, spool is not None, block_bytes)
        # Of the block queued last: done once its features have been taken. Each block waits for
        # the one before, so the spool has the documents' order; threads take blocks as they were
        # queued, so whoever is waited for is at work.
        self._taken: Future[None] = Future()
        self._taken.set_result(None)
        self._values: list[Any] = [np.zeros((0, recipe.words), np.uint64)]
        self._counts: list[Any] = [np.zeros(0, np.int64)]
        self._running: deque[tuple[Future[Any], int]] = deque()
        self._waiting_bytes = 0

    def add(self, texts: pa.Array) -> None:
        """Queue a large-string array; waits while much text is queued: see MOST_WAITING."""
        values = np.zeros((len(texts), self._recipe.words), np.uint64)
        counts = np.zeros(len(texts), np.int64)
        for block in text_blocks(texts, self._block_bytes):
            while self._waiting_bytes > self._most_waiting:
                self._wait_for_oldest()
            before, self._taken = self._taken, Future()
            work = self._pool.submit(self._work_on, block, values, counts, before, self._taken)
            self._running.append((work, block.nbytes))
            self._waiting_bytes += block.nbytes
        self._values.append(values)
        self._counts.append(counts)

    def finish(self) -> Any:
        """Wait for all that was queued; uint64 (n, words), masked where a text has no tokens."""
        while self._running:
            self._wait_for_oldest()
        values, empty = np.concatenate(self._values), np.concatenate(self._counts) == 0
        if empty.any():
            return np.ma.MaskedArray(values, np.repeat(empty[:, None], self._recipe.words, axis=1))
        return values

    def feature_offsets(self) -> Any:
        """The start of each document's features in the spool, after `finish`: int64 (n + 1,)."""
        counts = np.concatenate(self._counts)
        offsets = np.zeros(counts.size + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return offsets

    def _work_on(
        self, block: TextBlock, values: Any, counts: Any, before: Future[None], taken: Future[None]
    ) -> None:
        """Fingerprint a block, and give its features to the spool when the one before has."""
        try:
            with self._works.lent(block) as work:
                keeps = self._spool is not None
                features = fingerprint_block(block, self._recipe, values, counts, keeps, work)
                before.result()
                rest = None if self._spool is None else self._spool.take(features)
                taken.set_result(None)
                if rest is not None:
                    rest()
        except BaseException as error:
            if not taken.done():  # otherwise the next block would wait for ever
                taken.set_exception(error)
            raise

    def _wait_for_oldest(self) -> None:
        work, nbytes = self._running.popleft()
        work.result()
        self._waiting_bytes -= nbytes

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Stop the threads; what is still queued after an error is dropped."""
        self._pool.shutdown(cancel_futures=True)


class _Works:
    """Working memory of blocks: that of one block serves the next, in any number of threads."""

    def __init__(self, recipe: Recipe, keep_features: bool, block_bytes: int) -> None:
        self._recipe, self._keep_features = recipe, keep_features
        self._room = block_bytes + KEPT_BYTES
        self._idle: list[tuple[int, Work]] = []

    @contextlib.contextmanager
    def lent(self, block: TextBlock) -> Iterator[Work | None]:
        """Memory for a block, until the context ends; None where it is not worth keeping."""
        longest = block.longest
        if longest > KEPT_BYTES or not _has_kernel(self._recipe):
            yield None
            return
        try:
            most, work = self._idle.pop()
        except IndexError:
            most, work = 0, None
        if work is None or most < longest:
            most = 1 << longest.bit_length()
            work = _work_for(self._recipe, self._keep_features, most, self._room)
        yield work
        self._idle.append((most, work))


def _work_for(recipe: Recipe, keep_features: bool, longest: int, nbytes: int) -> Work:
    """Working memory for texts of `longest` bytes, in blocks of about `nbytes`."""
    from neardup.kernels.fingerprinting.block import work_for

    features = nbytes if recipe.tokens == "chars" else nbytes // _BYTES_A_FEATURE
    folding = _folding(recipe, keep_features)
    return work_for(longest, features, folding, _weighing(recipe), _hash_code(recipe))


def _folding(recipe: Recipe, keep_features: bool) -> Folding:
    from neardup.kernels.fingerprinting.fold_arguments import Folding

    weight, seed = _WEIGHT_CODES[recipe.weight], np.uint64(recipe.seed)
    return Folding(weight, seed, recipe.tie == "one", keep_features)


def fingerprint_block(
    block: TextBlock,
    recipe: Recipe,
    values: Any,
    counts: Any,
    keep_features: bool = False,
    work: Work | None = None,
) -> Any:
    """Fingerprint one block into its rows of `values` (n, words) and `counts` (n,).

    Args:
        block: The block.
        recipe: How.
        values: uint64 (n, words), written.
        counts: int64 (n,), written: the features of each document.
        keep_features: Whether features are wanted.
        work: Working memory that `_Works` lent, where there is some.

    Returns:
        uint64: the feature hashes of the block's documents, one after the other, if wanted; until
        `work` is used again.
    """
    block = rewritten(block, recipe)
    if not _has_kernel(recipe):
        return _fingerprint_one_by_one(block, recipe, values, counts, keep_features)

    from neardup.kernels.fingerprinting.block import fingerprint_block as kernel

    rows = slice(block.first, block.first + len(block))
    if work is None:
        longest = block.longest if block.longest <= KEPT_BYTES else 0  # the kernel counts the rest
        work = _work_for(recipe, keep_features, longest, block.nbytes)
    features = kernel(
        block.data,
        block.offsets,
        cutting(recipe, recipe.tokens == "chars", recipe.ngram),
        _folding(recipe, keep_features),
        _weighing(recipe),
        work,
        values[rows],
        counts[rows],
    )
    if recipe.bits % 64:
        values[rows, -1] &= np.uint64((1 << recipe.bits % 64) - 1)
    return spread(features) if _is_raw32(recipe) else features


def _has_kernel(recipe: Recipe) -> bool:
    if recipe.preset is not None or find_hash(recipe.hash).kernel is None:
        return False
    if not in_kernel(recipe.tokens) or recipe.weight not in _WEIGHT_CODES:
        return False
    return recipe.missing == "default"


def _hash_code(recipe: Recipe) -> Any:
    """The hash as kernels take it: None is XXH3, which has compiled code of its own."""
    if recipe.hash == "xxh3" and (recipe.seed == 0 or recipe.weight != "tfidf"):
        return None
    from neardup.kernels.features.byte_hashes import SPREAD

    hash_ = find_hash(recipe.hash)
    is_spread = hash_.bits < 64 and recipe.bits > hash_.bits
    return np.int64((hash_.kernel or 0) | (SPREAD if is_spread else 0))


def _is_raw32(recipe: Recipe) -> bool:
    """Whether the kernel folds 32 bits as they are; features are 64 bits wide all the same."""
    return recipe.bits <= find_hash(recipe.hash).bits < 64


def _weighing(recipe: Recipe) -> Weighing | None:
    """The arguments by which a kernel weighs or leaves out features; None if all of them count."""
    plain = recipe.top is None and recipe.stopwords is None
    if plain and recipe.weight in {"set", "count"}:
        return None
    from neardup.features.frequency_table import table_of
    from neardup.kernels.fingerprinting.fold_arguments import Weighing

    table, sieve, missing = NO_TABLE, NO_TABLE, 0
    if recipe.weight == "tfidf":
        table, sieve, missing = table_of(recipe).kernel_table()
    return Weighing(stop_table(recipe), table, sieve, missing, recipe.top or 0)


def _fingerprint_one_by_one(
    block: TextBlock, recipe: Recipe, values: Any, counts: Any, keep_features: bool
) -> Any:
    """As `fingerprint_block`, for presets and for hashes that the kernel does not compute."""
    from neardup.fingerprinting.majority import majority
    from neardup.fingerprinting.plain import weighted_features

    width = find_hash(recipe.hash).bits
    kept: list[int] = []
    for i in range(len(block)):
        begin, end = block.offsets[i], block.offsets[i + 1]
        if recipe.preset is not None:
            code = _preset_value(block.data[begin:end].tobytes(), recipe, keep_features)
            value, count = code or 0, int(code is not None)
        else:
            hashes, weights = weighted_features(block.data, begin, end, recipe)
            wide = [expanded(digest, width, recipe.bits) for digest in hashes]
            count = len(hashes)
            tie_one = recipe.tie == "one" and count > 0
            value = majority(wide, weights, recipe.bits, tie_one=tie_one)
            if keep_features:
                kept += [expanded(digest, width, 64) for digest in hashes]
        counts[block.first + i] = count
        for word in range(recipe.words):
            values[block.first + i, word] = value >> 64 * word & (1 << 64) - 1
    return np.array(kept, np.uint64)


def _preset_value(text: bytes, recipe: Recipe, keep_features: bool) -> int | None:
    from neardup.fingerprinting.libraries.table import fingerprint_text

    if keep_features:
        raise UsageError(
            f"the preset {recipe.preset} has no features to compare: pass --distance, or a recipe"
        )
    return fingerprint_text(text.decode(), recipe)
