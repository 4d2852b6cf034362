"""Measured costs of each step of a search or join, one name for each.

All seconds are of one thread on two idle cores of an Intel Xeon (AVX-512, 2.3 GHz), 21 November
2026; the bench case named at each group measures how far the choices that follow from them are
from the best. The groups differ on purpose: a row that a join compares lies in cache, a row of a
search's table anywhere in memory.
"""

from __future__ import annotations

from typing import Final

EXTRA_BLOCKS: Final = 10
"""The most blocks beyond the distance in the compared plans."""

# A join of all rows in memory, by blocks that agree. Case: pair_plans.
JOIN_MOST_TABLES: Final = 50_000
JOIN_BUCKET_BYTES: Final = 1 << 17  # that fit the cache
JOIN_MOST_BINS_LOG2: Final = 13
JOIN_PARTITION_SECONDS: Final = 150e-6  # starting one top-level partition
JOIN_REFINE_SECONDS: Final = 150e-9  # starting to refine one bucket
JOIN_RUN_SECONDS: Final = 15e-9  # starting the comparisons of a row in a bucket of more than a few
JOIN_NEAR_SECONDS: Final = 15e-9  # a near pair, in each table

# A join by blocks with bits turned. Cases: pair_plans, large_k.
JOIN_MIH_MOST_KEY_BITS: Final = 22
JOIN_MIH_MOST_FLIPS: Final = 4096
JOIN_MIH_START_SECONDS: Final = 500e-6  # starting to sort by a block, and to join its buckets
JOIN_MIH_SORT_SECONDS: Final = 31e-9  # sorting one row by a block, one word
JOIN_MIH_VISIT_SECONDS: Final = 25e-9  # two buckets that meet
JOIN_MIH_COMPARE_SECONDS: Final = 0.085e-9  # one comparison of two buckets, one word
JOIN_MIH_NEAR_SECONDS: Final = 4e-9  # a near pair, in each block that is turned

# A join that reads its rows from a file. Case: scale.
SPILL_SELECT_SECONDS: Final = 5e-9  # reading one word of a row, and whether it is in a slab
SPILL_GATHER_SECONDS: Final = 24e-9  # bringing one row of a slab to its place

# Hash tables that greedy keeping asks for rows of its own. Case: dedup_distance.
KEEP_MOST_TABLES: Final = 500
KEEP_PROBE_SECONDS: Final = 45e-9  # one look into a table
KEEP_CANDIDATE_SECONDS: Final = 4.5e-9  # one row of a table's chain, one word

# A query of a batch. Case: search_plans.
SEARCH_QUERY_SECONDS: Final = 100e-9  # what every query costs
SEARCH_SCAN_SECONDS: Final = 0.2e-9  # one comparison, one word, in a run that streams from cache
SEARCH_SCAN_RUN: Final = 128  # rows that are looked at again where one is near
SEARCH_SCAN_AGAIN_SECONDS: Final = 0.8e-9
SEARCH_HIT_SECONDS: Final = 40e-9

# Its tables of buckets. Case: search_plans.
SEARCH_MOST_TABLES: Final = 128
SEARCH_MOST_KEY_BITS: Final = 32
SEARCH_ROWS_A_KEY: Final = 4
SEARCH_MOST_LOOKUPS: Final = 1_000_000  # by a plan that is named
SEARCH_MOST_LOOKUPS_AUTO: Final = 8192  # by one that is chosen
SEARCH_CACHED_BYTES: Final = 1 << 21
SEARCH_LOOKUP_SECONDS: Final = 50e-9  # one bucket of tables of SEARCH_CACHED_BYTES
SEARCH_LOOKUP_DOUBLING: Final = 10e-9  # more for every doubling of the tables beyond that
SEARCH_NEAR_BYTES: Final = 1 << 26  # buckets of such tables are read as they are compared
SEARCH_CANDIDATE_SECONDS: Final = 0.4e-9  # a row of a bucket, one word, of SEARCH_NEAR_BYTES
SEARCH_CANDIDATE_DOUBLING: Final = 0.25e-9
SEARCH_CANDIDATE_MOST_SECONDS: Final = 1.3e-9
SEARCH_TABLE_HIT_SECONDS: Final = 90e-9  # it shares several buckets, and is reported in one

# Its bit-sliced scan. Case: search_plans.
SLICES_BLOCK: Final = 512  # rows that are counted together
SLICES_GROUP: Final = 8  # bits after which a block may be left
SLICES_BLOCK_SECONDS: Final = 20e-9
SLICES_GROUP_SECONDS: Final = 15e-9
SLICES_TURN_SECONDS: Final = 1.5e-9  # one bit of a query
SLICES_SMALL_DISTANCE: Final = 16  # from here on wider counters take twice the time

# Its permuted lists. Case: search_plans.
PERMUTE_WINDOW: Final = 64  # neighbours on both sides
PERMUTE_LIST_SECONDS: Final = 1900e-9  # one binary search and its window


def join_row_seconds(width: int) -> float:
    """The seconds to partition one row and pass over it first, in cache and at the top level."""
    return (5 + 4 * width) * 1e-9


def join_pair_seconds(width: int) -> float:
    """The seconds of one comparison in a long run; one word is best for vector units."""
    return 0.08e-9 if width == 1 else (0.33 + 0.27 * width) * 1e-9
