"""A drop-in for PyPI simhash 2.1.2: the same classes and values, faster, with any NumPy.

Replace `from simhash import Simhash, SimhashIndex` by
`from neardup.compat.simhash import Simhash, SimhashIndex`.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import logging
import numbers
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from neardup.features.hashes import joined
from neardup.fingerprinting.majority import majority
from neardup.fingerprinting.md5_windows import WIDTH, windows_value

__all__ = ["Simhash", "SimhashIndex"]

HashFunction: TypeAlias = Callable[[bytes], bytes | int]
Features: TypeAlias = Mapping[str, float] | Iterable[str | tuple[str, float]]

_LETTERS: Final = r"[\w\u4e00-\u9fcc]+"
_find_letters: Final = re.compile(_LETTERS).findall
_MD5_BITS: Final = 128
_WORD: Final = 64
_SPARE: Final = b"\0" * 16
_BIG_BUCKET: Final = 200
_MOST_WEIGHT: Final = 1 << 31
_NO_WEIGHTS: Final = np.zeros(0, np.int64)
_SIZED: Final[tuple[type, ...]] = (list, tuple, set, frozenset, type({}.items()), type({}.keys()))


def _hashfunc(x: bytes) -> bytes:
    return hashlib.md5(x, usedforsecurity=False).digest()


class Simhash:
    """A fingerprint.

    Args:
        value: A text, features (see `build_by_features`), another Simhash, or a fingerprint.
        f: Bits, a multiple of 8.
        reg: Pattern of what is kept of a text.
        hashfunc: Gives bytes, or an unsigned integer, of at least f bits for the UTF-8 of a
            feature.
        log: A logger; by default that of "simhash".

    Example:
        >>> Simhash(["aaa", "bbb"]).value
        57087923692560392
    """

    large_weight_cutoff = 50
    batch_size = 200

    def __init__(
        self,
        value: Any,
        f: int = 64,
        reg: str | re.Pattern[str] = _LETTERS,
        hashfunc: HashFunction = _hashfunc,
        log: logging.Logger | None = None,
    ) -> None:
        """Compute the value of a text, features, another Simhash or an integer."""
        if f % 8:
            raise ValueError("f must be a multiple of 8")
        self.f = f
        self.reg = reg
        self.value: Any = None
        self.hashfunc = hashfunc
        self._log = log
        if isinstance(value, str):
            self.build_by_text(value)
        elif isinstance(value, Simhash):
            self.value = value.value
        elif isinstance(value, Iterable):
            self.build_by_features(value)
        elif isinstance(value, numbers.Integral):
            self.value = value
        else:
            raise TypeError(f"Bad parameter with type {type(value)}")

    @property
    def log(self) -> logging.Logger:
        """The logger of the instance."""
        return logging.getLogger("simhash") if self._log is None else self._log

    @property
    def f_bytes(self) -> int:
        """The bytes of the fingerprint."""
        return self.f // 8

    @property
    def hashfunc_returns_int(self) -> bool:
        """Whether the hash function gives integers."""
        return isinstance(self.hashfunc(b"test"), numbers.Integral)

    def __eq__(self, other: object) -> bool:
        """Compare values."""
        return bool(self.value == other.value)  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]  # as in the package, which defines only __eq__

    def build_by_text(self, content: str) -> None:
        """Set the value from a text: its windows of 4 characters with their counts.

        Example:
            >>> one = Simhash(["aaa"])
            >>> one.build_by_text("one two three")
            >>> one.distance(Simhash("one two three"))
            0
        """
        if self.hashfunc is _hashfunc and self.f <= _MD5_BITS:
            self.value = _text_value(content, self.reg, self.f)
        else:
            self.build_by_features(collections.Counter(self._tokenize(content)))

    def build_by_features(self, features: Features) -> None:
        """Set the value from features.

        Args:
            features: Tokens, (token, weight) pairs, or a mapping of tokens to weights. A token
                behind a pair has that pair's weight, as in the package.

        Example:
            >>> one = Simhash("one two three")
            >>> one.build_by_features(["aaa", "bbb"])
            >>> one.value == Simhash(["aaa", "bbb"]).value
            True
        """
        if isinstance(features, dict):
            features = features.items()
        if self.hashfunc is _hashfunc and self.f <= _WORD and isinstance(features, _SIZED):
            value = _features_value(features)  # type: ignore[arg-type]
            if value is not None:
                self.value = value & (1 << self.f) - 1
                return
        tokens: list[bytes] = []
        weights: list[Any] = []
        apart: list[bool] = []
        weight: Any = 1
        for feature in features:
            if isinstance(feature, str):
                token, large = feature, False
            else:
                token, weight = feature
                large = weight > self.large_weight_cutoff
            tokens.append(token.encode())
            weights.append(weight)
            apart.append(large or not isinstance(weight, int))
        self.value = self._fold(self._hashes(tokens), weights, apart)

    def distance(self, another: Simhash) -> int:
        """The number of differing bits.

        Example:
            >>> Simhash("one two three").distance(Simhash("One, two, three!"))
            0
        """
        if self.f != another.f:
            raise AssertionError(f"f is {self.f} and {another.f}: it must be equal")
        mask = (1 << self.f) - 1
        return int((int(self.value) ^ int(another.value)) & mask).bit_count()

    def _slide(self, content: str, width: int = WIDTH) -> list[str]:
        return [content[i : i + width] for i in range(max(len(content) - width + 1, 1))]

    def _tokenize(self, content: str) -> list[str]:
        return self._slide("".join(re.findall(self.reg, content.lower())))

    def _hashes(self, tokens: Sequence[bytes]) -> list[int]:
        if self.hashfunc is _hashfunc and self.f <= _MD5_BITS:
            return _md5_values(tokens)
        return [self._as_number(self.hashfunc(token)) for token in tokens]

    def _as_number(self, value: bytes | int) -> int:
        if not isinstance(value, bytes):
            return int(value)
        if len(value) < self.f_bytes:
            raise ValueError(f"the hash function gave {len(value)} bytes: f = {self.f} needs more")
        return int.from_bytes(value[-self.f_bytes :], "big")

    def _fold(self, hashes: Sequence[int], weights: list[Any], apart: list[bool]) -> int:
        if not all(isinstance(weight, int) for weight in weights):
            return self._fold_reals(hashes, weights, apart)
        if min(weights, default=1) >= 0:
            plain = weights.count(1) == len(weights)
            return majority(hashes, None if plain else weights, self.f)
        # The package repeats a digest `weight` times: below 0 its bits are dropped, but the
        # threshold falls all the same. That is a hash without bits.
        kept = [value if weight > 0 else 0 for value, weight in zip(hashes, weights, strict=True)]
        return majority(kept, weights, self.f)

    def _fold_reals(self, hashes: Sequence[int], weights: list[Any], apart: list[bool]) -> int:
        """The sums of real weights, added in the package's order, on which floats depend."""
        sums: list[Any] = []
        batch: list[Any] = []
        for value, weight, alone in zip(hashes, weights, apart, strict=True):
            if alone:
                sums.append(self._ones(value) * float(weight))
            else:
                batch.append(self._ones(value) * max(weight, 0))
                if len(batch) >= self.batch_size:
                    sums.append(np.sum(batch, 0))
                    batch = []
            if len(sums) >= self.batch_size:
                sums = [np.sum(sums, 0)]
        if batch:
            sums.append(np.sum(batch, 0))
        won = np.sum(sums, 0) > sum(weights) / 2
        return int.from_bytes(np.packbits(won).tobytes(), "big")

    def _ones(self, value: int) -> Any:
        data = (value & (1 << self.f) - 1).to_bytes(self.f_bytes, "big")
        return np.unpackbits(np.frombuffer(data, np.uint8)).astype(np.float64)


class SimhashIndex:
    """Finds fingerprints within k bits by equal blocks.

    Args:
        objs: (id, Simhash) pairs.
        f: Bits of all of them.
        k: Bits that may differ.
        log: A logger; by default that of "simhash".

    Example:
        >>> index = SimhashIndex([("a", Simhash("one two three four"))], k=3)
        >>> index.get_near_dups(Simhash("one, two, three, four!"))
        ['a']
    """

    def __init__(
        self,
        objs: Sequence[tuple[Any, Simhash]],
        f: int = 64,
        k: int = 2,
        log: logging.Logger | None = None,
    ) -> None:
        """Add all objects to the index."""
        self.k = k
        self.f = f
        self.log = logging.getLogger("simhash") if log is None else log
        self.log.info("Initializing %s data.", len(objs))
        self.bucket: collections.defaultdict[str, set[str]] = collections.defaultdict(set)
        for i, (obj_id, simhash) in enumerate(objs):
            if i % 10000 == 0 or i == len(objs) - 1:
                self.log.info("%s/%s", i + 1, len(objs))
            self.add(obj_id, simhash)

    def get_near_dups(self, simhash: Simhash) -> list[str]:
        """The ids, as strings, of the fingerprints within k bits."""
        self._check(simhash)
        ids = set()
        mask = (1 << self.f) - 1
        for key in self.get_keys(simhash):
            entries = self.bucket[key]
            self.log.debug("key:%s", key)
            if len(entries) > _BIG_BUCKET:
                self.log.warning("Big bucket found. key:%s, len:%s", key, len(entries))
            for entry in entries:
                value, obj_id = entry.split(",", 1)
                if ((simhash.value ^ int(value, 16)) & mask).bit_count() <= self.k:
                    ids.add(obj_id)
        return list(ids)

    def add(self, obj_id: Any, simhash: Simhash) -> None:
        """Add a fingerprint.

        Example:
            >>> index = SimhashIndex([], k=3)
            >>> index.add("a", Simhash("one two three"))
            >>> index.get_near_dups(Simhash("One, two, three!"))
            ['a']
        """
        self._check(simhash)
        for key in self.get_keys(simhash):
            self.bucket[key].add(f"{simhash.value:x},{obj_id}")

    def delete(self, obj_id: Any, simhash: Simhash) -> None:
        """Remove a fingerprint, if it is stored.

        Example:
            >>> index = SimhashIndex([("a", Simhash("one two three"))], k=3)
            >>> index.delete("a", Simhash("one two three"))
            >>> index.get_near_dups(Simhash("one two three"))
            []
        """
        self._check(simhash)
        for key in self.get_keys(simhash):
            self.bucket[key].discard(f"{simhash.value:x},{obj_id}")

    @property
    def offsets(self) -> list[int]:
        """The first bit of each block."""
        return [self.f // (self.k + 1) * i for i in range(self.k + 1)]

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """The bucket names of a fingerprint."""
        offsets = [*self.offsets, self.f]
        for i in range(self.k + 1):
            block = simhash.value >> offsets[i] & (1 << offsets[i + 1] - offsets[i]) - 1
            yield f"{block:x}:{i:x}"

    def bucket_size(self) -> int:
        """The number of buckets."""
        return len(self.bucket)

    def _check(self, simhash: Simhash) -> None:
        if simhash.f != self.f:
            raise AssertionError(f"f is {simhash.f}: the index has {self.f}")


def _text_value(content: str, reg: str | re.Pattern[str], f: int) -> int:
    if reg is not _LETTERS:
        kept, plain = "".join(re.findall(reg, content.lower())), False
    elif content.isascii():
        kept, plain = content, True
    else:
        kept, plain = "".join(_find_letters(content.lower())), False
    return windows_value(kept, plain, f, WIDTH, tie_one=False)


def _features_value(features: Collection[Any]) -> int | None:
    """The value of tokens, or of pairs with whole weights from 0 up, computed at once.

    None where they are something else.
    """
    weights = _NO_WEIGHTS
    tokens: Collection[Any] = features
    try:
        if features and not isinstance(next(iter(features)), str):
            tokens, numbers = zip(*features, strict=True)
            if set(map(type, numbers)) != {int}:
                return None
            weights = np.array(numbers, np.int64)
            if weights.min() < 0 or weights.max() > _MOST_WEIGHT:
                return None
        text = "\0".join(tokens)
    except (TypeError, ValueError, OverflowError):
        return None
    if not features or text.count("\0") != len(features) - 1:
        return None
    value, right = _fold_tokens()(text.encode() + b"\0" + _SPARE, weights, 0)
    return int(value) if right else None


def _md5_values(tokens: Sequence[bytes]) -> list[int]:
    from neardup.kernels.fingerprinting import md5

    if max(map(len, tokens), default=0) > md5.MOST_BYTES:
        return [int.from_bytes(_hashfunc(token), "big") for token in tokens]
    data, offsets = joined([*tokens, _SPARE])
    words = md5.md5_slices(data, offsets[:-1]).tolist()
    return [low | high << _WORD for low, high in words]


@functools.cache
def _fold_tokens() -> Any:
    from neardup.kernels.fingerprinting import md5

    return md5.direct(md5.fold_tokens, b"\0" + _SPARE, _NO_WEIGHTS, 0)
