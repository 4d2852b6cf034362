"""Groups of arguments of the kernel that fingerprints texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from neardup.kernels.features.token_arguments import Hasher, Tokens


class Folding(NamedTuple):
    """The rules by which hashes are made and become a fingerprint."""

    weight: int  # SET, COUNT, LOG or TFIDF; the latter two only with `Weighing`
    seed: Any  # uint64, of the hash
    tie_one: bool  # the bit where a sum is exactly 0
    keep_features: bool  # give back the distinct feature hashes


class Weighing(NamedTuple):
    """Tables and limits that leave features out, or give each a weight of its own."""

    stops: Any  # hash_table of the hashes of the stop words; empty where there are none
    table: Any  # hash_table of the units of inverse document frequency, for TFIDF
    sieve: Any  # hash_sieve of the table's keys; empty for a table that fits the cache itself
    missing: int  # units of a feature that is not in the table
    top: int  # how many of the heaviest features are kept; 0: all


class Work(NamedTuple):
    """Working memory, with room for the longest of the texts."""

    tokens: Tokens
    hasher: Hasher
    hashes: Any  # uint64
    cells: Any  # uint64, for `distinct`
    planes: Any  # uint64 (PLANES,)
    key_hasher: Hasher  # of seed 0: document frequencies are known by the XXH3 of it
    keys: Any  # uint64, those hashes
    units: Any  # int64, the features' weights; empty without `Weighing`
    spare: Any  # int64, likewise
    sums: Any  # int64 (64,)
    features: Any  # uint64, for those of a block's documents; empty unless they are kept
    kind: Any  # None for XXH3 and, for TFIDF, seed 0; else the hash, as `hash_bytes` takes it
