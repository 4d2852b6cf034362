"""The structures of requests and answers, and the checks of requests.

The structures are read and written by msgspec, and openapi.py makes the schema from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Self, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from neardup.index import DurableIndex
    from neardup.index.hits import Answer, Hits
    from neardup.service.settings import Limits

__all__ = [
    "Added", "Backup", "ComparedTexts", "Document", "ExplainedText", "First", "FirstMatch",
    "FirstMatches", "Match", "Matches", "Nearest", "Query", "Removal", "Removed", "Seen", "Terms",
    "as_document", "as_matches", "as_seen", "check_id", "check_reach", "id_kind", "other_ids",
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
    """A query, with one of text, features and fingerprint."""

    text: str | UnsetType = UNSET
    features: Features | UnsetType = UNSET
    fingerprint: int | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    similarity: float | UnsetType = UNSET
    distance: int | UnsetType = UNSET


class Nearest(Struct, forbid_unknown_fields=True):
    """A query for the closest documents, with one of text, features and fingerprint."""

    text: str | UnsetType = UNSET
    features: Features | UnsetType = UNSET
    fingerprint: int | UnsetType = UNSET
    n: Annotated[int, Meta(ge=1, le=1000)] = 10


class First(Struct, forbid_unknown_fields=True):
    """A document under its id, with one of text, features and fingerprint; it is not stored."""

    id: Id
    text: str | UnsetType = UNSET
    features: Features | UnsetType = UNSET
    fingerprint: int | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=0, le=1000)] = 1
    similarity: float | UnsetType = UNSET
    distance: int | UnsetType = UNSET


class Removal(Struct, forbid_unknown_fields=True):
    """The id of a document to remove."""

    id: Id


class ComparedTexts(Struct, forbid_unknown_fields=True):
    """Two texts to compare."""

    a: str
    b: str


class ExplainedText(Struct, forbid_unknown_fields=True):
    """A text to explain, or two texts whose difference to explain."""

    text: str
    other: str | UnsetType = UNSET


class Match(Struct, omit_defaults=True):
    """A stored document and how close it is."""

    id: str | int
    similarity: float | UnsetType = UNSET
    distance: int | UnsetType = UNSET


class Seen(Struct, omit_defaults=True):
    """The outcome of an offered document: whether it is new, its state, and its match."""

    new: bool
    state: Literal["new", "seen", "stored", "replaced", "empty"]
    match: Match | UnsetType = UNSET


class Matches(Struct):
    """The near stored documents, the closest first, and how many there are."""

    matches: list[Match]
    total: int


class FirstMatch(Struct, omit_defaults=True):
    """A stored document, how close it is, and its fingerprint if its features tell that."""

    id: str | int
    similarity: float | UnsetType = UNSET
    distance: int | UnsetType = UNSET
    fingerprint: int | UnsetType = UNSET


class FirstMatches(Struct):
    """The state of the id, and the near documents that were stored first."""

    stored: Literal["absent", "other", "same"]
    matches: list[FirstMatch]


class Added(Struct):
    """The outcome of a document that was added."""

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
_FORMS: Final = ("text", "features", "fingerprint")


def check_id(identity: str | int, limits: Limits) -> None:
    """Refuse an id that is too long, with a Problem."""
    if isinstance(identity, str):
        _check_size("an id", "characters", len(identity), limits.id_characters)


def id_kind(identity: str | int) -> str:
    """The kind of an id: "str" or "int"."""
    return "str" if isinstance(identity, str) else "int"


def other_ids(kind: str) -> Problem:
    """The problem of an id of another kind than the index has."""
    return Problem("other-ids", f"the ids of this index are of kind {kind}")


class Terms(NamedTuple):
    """The documents that an index accepts, and how large they may be.

    Args:
        takes: The fields that stand for a document.
        by: "similarity" or "distance".
        reach: The least similarity, or the largest distance, of a query.
        bits: Width of fingerprints.
        limits: Of the service.
    """

    takes: tuple[str, ...]
    by: str
    reach: float
    bits: int
    limits: Limits

    @classmethod
    def of(cls, index: DurableIndex, limits: Limits) -> Self:
        """The terms of an index."""
        texts = () if index.recipe is None else ("text",)
        if index.by == "similarity":
            return cls((*texts, "features"), index.by, index.similarity, 64, limits)
        return cls((*texts, "fingerprint"), index.by, index.distance, index.bits, limits)


def as_document(row: Document | Query | Nearest | First, terms: Terms) -> Any:
    """The text, features or fingerprint of a row, whichever it has.

    Raises:
        Problem: If it has none or several, one that the index does not take, or one too large.
    """
    text, features, value = row.text, row.features, row.fingerprint
    forms = (text is not UNSET) + (features is not UNSET) + (value is not UNSET)
    form = "text" if text is not UNSET else "fingerprint" if features is UNSET else "features"
    if forms != 1 or form not in terms.takes:
        names = [name for name in _FORMS if getattr(row, name) is not UNSET]
        raise _invalid(
            f"a document has {' and '.join(names) or 'nothing'}: give exactly one of"
            f" {', '.join(terms.takes)}, which this index takes"
        )
    if text is not UNSET:
        _check_size("a text", "characters", len(text), terms.limits.text_characters)
        return text
    if features is not UNSET:
        _check_size("a document", "features", len(features), MOST_FEATURES)
        if features and not 0 <= min(features) <= max(features) < 2**64:
            raise _invalid("features are whole numbers from 0 to 2**64 - 1")
        return features
    if value is UNSET or not 0 <= value < 2**terms.bits:
        raise _invalid(f"a fingerprint is a whole number of {terms.bits} bits")
    return value


def check_reach(row: Query | First, terms: Terms) -> None:
    """Refuse a query that reaches further than the index, with a Problem."""
    limits = {"similarity": row.similarity, "distance": row.distance}
    for name, value in limits.items():
        if value is UNSET:
            continue
        if name != terms.by:
            raise _invalid(f"the index is by {terms.by}: leave {name} out")
        low, high = (terms.reach, 1) if name == "similarity" else (0, terms.reach)
        if not low <= value <= high:
            raise _invalid(f"{name} is {value}: this index takes {low} to {high}")


def _invalid(detail: str) -> Problem:
    return Problem("invalid-document", detail)


def _check_size(what: str, units: str, size: int, most: int) -> None:
    if size > most:
        raise Problem("too-large", f"{what} has {size:,} {units}, and the limit is {most:,}")


def as_match(hit: tuple[str | int, Any], name: str) -> Match:
    """A hit of an index as a Match, by "similarity" or "distance"."""
    return Match(hit[0], hit[1]) if name == "similarity" else Match(hit[0], UNSET, hit[1])


def as_seen(answer: Answer, name: str) -> Seen:
    """The answer to an offered document."""
    near = answer.near
    return _PLAIN[answer.state] if near is None else Seen(False, "seen", as_match(near, name))


def as_matches(hits: Hits[Any], name: str) -> Matches:
    """The answer to a query."""
    return Matches([as_match(hit, name) for hit in hits], hits.total)
