"""The SQL function `simhash64(text)` for DuckDB connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.fingerprinting.fingerprints import fingerprints
from neardup.fingerprinting.recipe import recipe_of

if TYPE_CHECKING:
    import duckdb

    from neardup.fingerprinting.recipe import Recipe

__all__ = ["register"]

_MOST_BITS = 64


def register(
    connection: duckdb.DuckDBPyConnection, recipe: Recipe | None = None, name: str = "simhash64"
) -> None:
    """Register a SQL function on a connection: the fingerprint of a text, as UBIGINT.

    Null for null and for a text without tokens. The distance of two is `bit_count(xor(a, b))`.

    Args:
        connection: Where it is registered.
        recipe: The recipe; by default Recipe().
        name: What it is called.

    Raises:
        UsageError: For fingerprints of more than 64 bits.

    Example:
        >>> import duckdb
        >>> con = duckdb.connect()
        >>> register(con)
        >>> con.execute("select simhash64('one two') = simhash64('One, two!')").fetchone()
        (True,)
    """
    own = recipe_of(recipe)
    if own.bits > _MOST_BITS:
        raise UsageError(f"the recipe has {own.bits} bits, and {name} gives at most 64: use fewer")

    def computed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
        values = fingerprints(texts, own)
        codes, empty = np.ma.getdata(values)[:, 0], np.ma.getmaskarray(values)[:, 0]
        return pa.chunked_array([pa.array(codes, pa.uint64(), mask=empty)])

    # "special": DuckDB itself would refuse a null for a text without tokens.
    options: dict[str, Any] = {"type": "arrow", "null_handling": "special"}
    connection.create_function(name, computed, ["VARCHAR"], "UBIGINT", **options)
