"""Databases by name, as the store uses them within one transaction of LMDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Transaction"]


class Transaction:
    """What the store does in a transaction: databases by name."""

    def __init__(self, txn: Any, dbs: dict[bytes, Any]) -> None:
        self._txn, self._dbs = txn, dbs

    @property
    def number(self) -> int:
        """Of the snapshot."""
        return int(self._txn.id())

    def get(self, name: bytes, key: bytes) -> bytes | None:
        """The value of a key."""
        value = self._txn.get(key, db=self._dbs[name])
        return None if value is None else bytes(value)

    def put(self, name: bytes, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._txn.put(key, value, db=self._dbs[name])

    def put_new(self, name: bytes, items: list[tuple[bytes, bytes]]) -> bool:
        """Set the values of keys that have none; whether they had none."""
        _, added = self._txn.cursor(self._dbs[name]).putmulti(items, overwrite=False)
        return bool(added == len(items))

    def pop(self, name: bytes, key: bytes) -> bytes | None:
        """Remove a key; the value that it had."""
        value = self._txn.pop(key, db=self._dbs[name])
        return None if value is None else bytes(value)

    def items(self, name: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys from `first` on with their values, in order."""
        cursor = self._txn.cursor(self._dbs[name])
        if cursor.set_range(first):
            yield from cursor.iternext()

    def has(self, name: bytes) -> bool:
        """Whether there is any entry."""
        return bool(self._txn.cursor(self._dbs[name]).first())

    def keys(self, name: bytes) -> list[bytes]:
        """All keys, in order."""
        return [bytes(key) for key in self._txn.cursor(self._dbs[name]).iternext(values=False)]
