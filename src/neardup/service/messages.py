"""What requests and answers look like, and what of a request is refused.

The structures are read and written by msgspec, and openapi.py makes the schema from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from neardup.index.hits import Answer, Hits
    from neardup.service.settings import Limits

__all__ = [
    "Added", "Backup", "ComparedTexts", "Document", "ExplainedText", "Match", "Matches", "Nearest",
    "Query", "Removal", "Removed", "Seen", "as_document", "as_matches", "as_seen", "check_id",
    "decoder",
]  # fmt: skip

Id: TypeAlias = str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Features: TypeAlias = list[int]


class Document(Struct, forbid_unknown_fields=True):
    """A document under its id, with one of text, features and fingerprint."""

    id: Id
    text: str | UnsetType = UNSET
    features: Features | UnsetType = UNSET
    fingerprint: int | UnsetType = UNSET


class Query(Struct, forbid_unknown_fields=True):
    """What is asked about, with one of text, features and fingerprint."""

    text: str | UnsetType = UNSET
    features: Features | UnsetType = UNSET
    fingerprint: int | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    similarity: float | UnsetType = UNSET
    distance: int | UnsetType = UNSET


class Nearest(Struct, forbid_unknown_fields=True):
    """What the closest documents are asked of, with one of text, features and fingerprint."""

    text: str | UnsetType = UNSET
    features: Features | UnsetType = UNSET
    fingerprint: int | UnsetType = UNSET
    n: Annotated[int, Meta(ge=1, le=1000)] = 10


class Removal(Struct, forbid_unknown_fields=True):
    """The id of what is to be removed."""

    id: Id


class ComparedTexts(Struct, forbid_unknown_fields=True):
    """Two texts."""

    a: str
    b: str


class ExplainedText(Struct, forbid_unknown_fields=True):
    """A text whose features are shown, or two of which is shown what sets them apart."""

    text: str
    other: str | UnsetType = UNSET


class Match(Struct, omit_defaults=True):
    """A stored document and how close it is."""

    id: str | int
    similarity: float | UnsetType = UNSET
    distance: int | UnsetType = UNSET


class Seen(Struct, omit_defaults=True):
    """Whether no other document is near, what became of the one that was sent, and the match."""

    new: bool
    state: Literal["new", "seen", "stored", "replaced", "empty"]
    match: Match | UnsetType = UNSET


class Matches(Struct):
    """Stored documents that are near, the closest first, and how many there are."""

    matches: list[Match]
    total: int


class Added(Struct):
    """What became of a document that was added."""

    state: Literal["added", "empty"]


class Removed(Struct):
    """Whether the document was stored until now."""

    removed: bool


class Backup(Struct):
    """A copy of the last commit: the name of its folder."""

    backup: str
    documents: int


_NEW, _STORED, _REPLACED = Seen(True, "new"), Seen(True, "stored"), Seen(True, "replaced")
_EMPTY = Seen(True, "empty")
_PLAIN: Final = {"new": _NEW, "stored": _STORED, "replaced": _REPLACED, "empty": _EMPTY}
MOST_FEATURES: Final = 1 << 20


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """What reads JSON into a structure."""
    return msgspec.json.Decoder(kind)


def check_id(identity: str | int, limits: Limits) -> None:
    """Refuse an id that is too long; Problem says so."""
    if isinstance(identity, str) and len(identity) > limits.id_characters:
        raise Problem(
            "too-large",
            f"an id has {len(identity):,} characters, and the limit is {limits.id_characters:,}",
        )


def as_document(row: Document | Query | Nearest, limits: Limits) -> Any:
    """The text, the features or the fingerprint that a row has, whichever it is.

    Raises:
        Problem: If it has none or several, or one that is too large.
    """
    text = row.text
    if text is not UNSET and row.features is UNSET and row.fingerprint is UNSET:
        if len(text) > limits.text_characters:
            raise Problem(
                "too-large",
                f"a text has {len(text):,} characters, and the limit is {limits.text_characters:,}",
            )
        return text
    given = [each for each in (text, row.features, row.fingerprint) if each is not UNSET]
    if len(given) != 1:
        raise Problem(
            "invalid-document",
            f"a document has {len(given)} of text, features and fingerprint: give exactly one",
        )
    if row.features is not UNSET and len(row.features) > MOST_FEATURES:
        raise Problem(
            "too-large",
            f"a document has {len(row.features):,} features, and the limit is {MOST_FEATURES:,}",
        )
    return given[0]


def as_match(hit: tuple[str | int, Any], name: str) -> Match:
    """A hit of an index by "similarity" or "distance"."""
    return Match(hit[0], hit[1]) if name == "similarity" else Match(hit[0], UNSET, hit[1])


def as_seen(answer: Answer, name: str) -> Seen:
    """What an index answered."""
    near = answer.near
    return _PLAIN[answer.state] if near is None else Seen(False, "seen", as_match(near, name))


def as_matches(hits: Hits[Any], name: str) -> Matches:
    """What an index found."""
    return Matches([as_match(hit, name) for hit in hits], hits.total)
