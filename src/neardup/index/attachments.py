"""Attachments: the small value (payload) and the content that an index stores with a document.

The attachment of a row is one value of bytes: whether it has a content (a text, features), the
payload, the content. An index in memory has a dict of them by number, a durable index its log.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import orjson
import pyarrow as pa

from neardup.documents.markup import extracted
from neardup.errors import UsageError
from neardup.index.id_columns import id_array
from neardup.index.set_arrays import Sets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from neardup.fingerprinting.recipe import Recipe
    from neardup.index.hits import Id
    from neardup.index.protocol import Contents, Documents, Ids, Payloads
    from neardup.index.segment_files import SegmentFile
    from neardup.index.versions import AnyKind, AnyVersion

__all__ = [
    "MOST_BYTES",
    "STORES",
    "Attachments",
    "ContentCodec",
    "attachment",
    "attachments_in",
    "column_of",
    "content_in",
    "payload_bytes",
    "payload_in",
    "store_of",
]

MOST_BYTES: Final = 4096
"""The most bytes of an encoded payload."""
HEAD: Final = struct.Struct("<I")
BYTES: Final = b"\0"
"""The byte before a payload of bytes; other payloads are JSON, which never begins with it."""
STRICT: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class Attachments:
    """Contents and payloads that an index in memory stores with its rows, by number.

    A number is never used again, so additions do not disturb an older snapshot. Removed values stay
    until they are most of all values; then another object replaces this one. So a snapshot that
    shares this object stays right as long as it is used.

    Args:
        kept: By number.
    """

    def __init__(self, kept: dict[int, bytes] | None = None) -> None:
        """Store values by number."""
        self._kept = kept or {}
        self._gone: list[int] = []
        self.nbytes = sum(map(len, self._kept.values()))
        """Bytes of the stored values, and of the removed ones that are still here."""

    @classmethod
    def of_rows(cls, numbers: list[int], kept: list[bytes | None] | None) -> Attachments:
        """Attachments of some rows; an item of `kept` is None if its row has none."""
        each = zip(numbers, kept or [None] * len(numbers), strict=True)
        return cls({number: value for number, value in each if value is not None})

    def close(self) -> None:
        """Do nothing: attachments in memory hold no file."""

    def __len__(self) -> int:
        """Rows that have something."""
        return len(self._kept) - len(self._gone)

    def of(self, numbers: list[int]) -> list[bytes | None] | None:
        """The attachment of each row; None if no row has one."""
        return [self._kept.get(each) for each in numbers] if self._kept else None

    def begin(self, first: int) -> Callable[[], None]:
        """Begin a transaction; returns a function that undoes what follows.

        Rows removed after this call are there again, and those with numbers from `first` on, which
        were added after it, are removed.
        """
        removals, count = self._gone, len(self._gone)

        def undo() -> None:
            added = itertools.takewhile(lambda number: number >= first, reversed(self._kept))
            removals[count:] = list(added)

        return undo

    def put(self, first: int, kept: list[bytes | None]) -> None:
        """Store the attachments of rows with the numbers from `first` on."""
        added = {first + at: each for at, each in enumerate(kept) if each is not None}
        self._kept |= added
        self.nbytes += sum(map(len, added.values()))

    def without(self, numbers: list[int]) -> Attachments:
        """The attachments after rows are removed: this object, or another.

        Rows removed before the call are forgotten. Those of this call are not forgotten yet, since
        a snapshot of the previous version may still be taken.
        """
        remaining = self
        if 2 * len(self._gone) > len(self._kept):
            removals = set(self._gone)
            remaining = Attachments(
                {n: kept for n, kept in self._kept.items() if n not in removals}
            )
        remaining._gone += [each for each in numbers if each in remaining._kept]
        return remaining

    def take_back(self, version: AnyVersion) -> None:
        """Forget additions and removals of rows that a version does not have, or still has."""
        for number in [each for each in self._kept if each >= version.next]:
            self.nbytes -= len(self._kept.pop(number))
        removals = np.array(self._gone, np.int64)
        self._gone[:] = removals[~version.numbered(removals).present].tolist()


def payload_bytes(names: list[Id], payloads: Payloads) -> list[bytes]:
    """Payloads as bytes, b"" for None.

    Args:
        names: The ids.
        payloads: As many, or None.

    Raises:
        UsageError: If their numbers differ, or one is too large or of another type.
    """
    if payloads is None:
        return [b""] * len(names)
    if isinstance(payloads, (pa.Array, pa.ChunkedArray)):
        payloads = payloads.to_pylist()
    if not isinstance(payloads, (list, tuple, np.ndarray)):
        raise UsageError(f"payloads are {type(payloads).__name__}: give a list, one for each id")
    if len(payloads) != len(names):
        raise UsageError(f"{len(names):,} ids for {len(payloads):,} payloads: give one for each id")
    return [_encoded(name, each) for name, each in zip(names, payloads, strict=True)]


def _encoded(name: Id, payload: Payloads) -> bytes:
    if payload is None:
        return b""
    try:
        encoded = (
            BYTES + payload if isinstance(payload, bytes) else orjson.dumps(payload, None, STRICT)
        )
    except TypeError as error:
        raise UsageError(
            f"the payload of {name!r:.60} is {payload!r:.60}, which cannot be kept ({error}): give"
            " bytes or a JSON value"
        ) from None
    if len(encoded) > MOST_BYTES:
        raise UsageError(
            f"the payload of {name!r:.60} has {len(encoded):,} bytes, and the most is"
            f" {MOST_BYTES:,}: store it elsewhere, and its address here"
        )
    return encoded


def attachment(content: bytes | None, payload: bytes = b"") -> bytes | None:
    """The bytes to store with a row; None if there is neither content nor payload."""
    if content is None and not payload:
        return None
    return HEAD.pack(2 * len(payload) + (content is not None)) + payload + (content or b"")


def content_in(kept: bytes | None) -> bytes | None:
    """The content; None if there is none."""
    if kept is None:
        return None
    (head,) = HEAD.unpack_from(kept)
    return bytes(kept[HEAD.size + head // 2 :]) if head % 2 else None


def payload_in(kept: bytes | None) -> Any:
    """The payload, decoded; None if there is none."""
    if kept is None:
        return None
    (head,) = HEAD.unpack_from(kept)
    payload = bytes(kept[HEAD.size : HEAD.size + head // 2])
    if not payload:
        return None
    return payload[1:] if payload.startswith(BYTES) else orjson.loads(payload)


def column_of(kept: Iterable[bytes | None]) -> dict[str, Any]:
    """Arrays of a file that hold the attachments of its rows."""
    values = [each or b"" for each in kept]
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(each) for each in values], out=ends[1:])
    return {"beside": np.frombuffer(b"".join(values), np.uint8), "beside_ends": ends}


def attachments_in(file: SegmentFile) -> Attachments:
    """The attachments in a SegmentFile of `column_of`."""
    if "beside" not in file.header["arrays"]:
        return Attachments()
    data, ends = file.array("beside").tobytes(), file.array("beside_ends").tolist()
    numbers = file.array("numbers").tolist()
    parts = zip(numbers, ends[:-1], ends[1:], strict=True)
    return Attachments({number: data[begin:end] for number, begin, end in parts if end > begin})


STORES: Final = ("none", "features", "text")
CODEC: Final = "zstd"


def store_of(kind: AnyKind, store: str | None) -> str:
    """The kind of contents that an index stores: one of STORES; by default what its rows hold.

    Raises:
        UsageError: For another name.
    """
    if store not in {None, *STORES}:
        raise UsageError(f"store is {store!r}: use one of {', '.join(STORES)}")
    return store or kind.keeps or "none"


class ContentCodec:
    """Encodes and decodes contents that are stored with rows.

    Args:
        kind: One of STORES.
        recipe: Of the index.
        extract: Of the index: the part of HTML that is compared is the part that is stored.
    """

    def __init__(
        self, kind: str = "none", recipe: Recipe | None = None, extract: str | None = None
    ) -> None:
        """Take the settings."""
        self.kind, self._recipe, self._extract = kind, recipe, extract or "none"
        self.is_kept = kind != "none"
        """Whether the index stores contents."""

    @classmethod
    def for_kind(cls, kind: AnyKind, store: str) -> Self:
        """The codec of an index with one of STORES, for what the rows do not already hold."""
        return cls("none" if store == kind.keeps else store, kind.recipe, kind.extract)

    def check_merging(self, theirs: str) -> None:
        """Refuse to merge an index that does not store the contents that this one does.

        Args:
            theirs: One of STORES.

        Raises:
            UsageError: If contents would be missing.
        """
        made_of_texts = self.kind == "features" and theirs == "text"
        if self.is_kept and theirs != self.kind and not made_of_texts:
            raise UsageError(
                f"the index keeps {self._kept}, and the other one {theirs}: contents would be"
                " missing; merge into an index that keeps no more than the other"
            )

    def attachments(
        self, ids: Ids, documents: Documents, contents: Contents | None, payloads: Payloads
    ) -> list[bytes | None] | None:
        """The attachments of documents that are being added; None if they have none.

        Args:
            ids: As for `add`, many.
            documents: As many; texts are kept unless contents are given.
            contents: As many texts or arrays of feature hashes.
            payloads: As many small values, or None.

        Raises:
            UsageError: If contents are missing or not wanted, or something cannot be kept.
        """
        contents_ = self.encoded(ids, documents, contents)
        if payloads is None:
            return None if contents_ is None else [attachment(each) for each in contents_]
        names = ids if isinstance(ids, list) else id_array(ids).to_pylist()
        small = payload_bytes(names, payloads)
        return [
            attachment(*each) for each in zip(contents_ or [None] * len(small), small, strict=True)
        ]

    def encoded(
        self, ids: Ids, documents: Documents, contents: Contents | None
    ) -> list[bytes | None] | None:
        """The contents that are kept of documents that are being added; None where none are.

        Args:
            ids: As for `add`, many.
            documents: As many texts, which are kept unless contents are given.
            contents: As many texts or arrays of feature hashes.

        Raises:
            UsageError: If contents are missing, not wanted, or of a wrong number or type.
        """
        if not self.is_kept:
            if contents is not None:
                raise UsageError(
                    "the index keeps no contents: make it with store='text', or leave contents out"
                )
            return None
        values = _listed(documents if contents is None else contents)
        names = id_array(ids).to_pylist()
        if len(values) != len(names):
            raise UsageError(
                f"{len(names):,} ids for {len(values):,} contents: give one for each id"
            )
        if contents is None:
            self._check_texts(names, values)
        return [self._encoded(name, value) for name, value in zip(names, values, strict=True)]

    def _check_texts(self, names: list[Id], values: list[Any]) -> None:
        """Refuse fingerprints or features alone: their texts are unknown."""
        for name, value in zip(names, values, strict=True):
            if value is not None and not isinstance(value, str):
                raise UsageError(
                    f"the index keeps {self._kept}, and {name!r} comes with a fingerprint or"
                    f" features ({type(value).__name__}) alone: give texts, or pass contents="
                )

    @property
    def _kept(self) -> str:
        return "texts" if self.kind == "text" else "features"

    def _encoded(self, identity: Id, value: Any) -> bytes | None:
        if value is None:
            return None  # a document without tokens, which is left out
        if isinstance(value, str):
            value = extracted(value, self._extract)
        if self.kind == "text":
            if not isinstance(value, str):
                raise UsageError(
                    f"the index keeps texts, and {identity!r} comes with {type(value).__name__}:"
                    " give texts, or pass contents="
                )
            plain = value.encode("utf8", "surrogatepass")
            packed = pa.compress(plain, codec=CODEC, asbytes=True)
            return len(plain).to_bytes(8, "little") + bytes(packed)
        if isinstance(value, str) and self._recipe is not None:
            from neardup.fingerprinting.fingerprints import feature_hashes

            value = feature_hashes(value, self._recipe)
        if not isinstance(value, np.ndarray) or value.dtype != np.uint64 or value.ndim != 1:
            raise UsageError(
                f"the index keeps features, and {identity!r} comes with {type(value).__name__}:"
                " give texts, or pass contents= with arrays of uint64 feature hashes"
            )
        return np.ascontiguousarray(value).tobytes()

    def decoded(self, value: bytes | None) -> Any:
        """A text or uint64 hashes; None for None."""
        if value is None:
            return None
        if self.kind == "features":
            return np.frombuffer(value, np.uint64)
        size = int.from_bytes(value[:8], "little")
        plain = pa.decompress(value[8:], decompressed_size=size, codec=CODEC, asbytes=True)
        return bytes(plain).decode("utf8", "surrogatepass")


def _listed(values: Any) -> list[Any]:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return list(values.to_pylist())
    if isinstance(values, Sets):
        return [values.of(row) for row in range(values.size)]
    return list(values)
