"""Problems: the reason of each refusal, as problem details of RFC 9457; each kind has a page.

The page is served under `/problems/NAME`, which is the problem's `type`, and is a section of
docs/guide/serve-problems.md.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, NamedTuple

__all__ = ["KINDS", "PROBLEM", "Kind", "Problem", "phrase_of"]

PROBLEM: Final = b"application/problem+json"
_PHRASES: Final = {413: "Content Too Large", 422: "Unprocessable Content"}


class Kind(NamedTuple):
    """A kind of problem.

    Args:
        status: Of the answer.
        title: What is wrong, the same for every occurrence.
        remedy: What to do.
    """

    status: int
    title: str
    remedy: str


_AGAIN: Final = (
    "Nothing was stored. Send the request again under the same id after the number of seconds in"
    " `Retry-After`."
)
KINDS: Final[dict[str, Kind]] = {
    "malformed-body": Kind(
        400,
        "The body cannot be read",
        "Send JSON in UTF-8, one object or one array of objects; one object per line for"
        " `application/x-ndjson`; an Arrow IPC stream for `application/vnd.apache.arrow.stream`."
        " `detail` says where reading stopped.",
    ),
    "key-missing": Kind(
        401,
        "The request has no key of this service",
        "Send `Authorization: Bearer KEY` with a key of the file that `--keys` names, or of"
        " NEARDUP_KEY or NEARDUP_READ_KEY.",
    ),
    "key-only-reads": Kind(
        403, "The key may only read", "Use a key that may write, or ask `/v1/query`."
    ),
    "read-only": Kind(
        403,
        "The service only reads",
        "It was started with `--readonly`. Send writes to the service that writes.",
    ),
    "host-not-allowed": Kind(
        403,
        "The service does not answer under this host name",
        "A service without keys answers to `localhost` and loopback addresses only, so that no"
        " web page can reach it under a name of its own. Use such a name, or start it with keys.",
    ),
    "origin-not-allowed": Kind(
        403,
        "Pages of this origin may not call the service",
        "Start the service with `--origin` and the page's scheme, host and port.",
    ),
    "not-found": Kind(
        404, "There is nothing at this address", "`GET /openapi.json` lists the addresses."
    ),
    "method-not-allowed": Kind(
        405, "The address does not have this method", "`Allow` names the methods that it has."
    ),
    "body-too-slow": Kind(
        408,
        "The body did not arrive in time",
        "Send the body without pauses. Nothing of a JSON body was stored; the lines of a stream"
        " that were answered were stored.",
    ),
    "other-recipe": Kind(
        409,
        "The index has another recipe",
        "The header `Neardup-Recipe` of the request must be the digest that `GET /v1/index` gives:"
        " features and fingerprints of different recipes cannot be compared.",
    ),
    "other-ids": Kind(
        409,
        "The index has ids of another kind",
        "The ids of an index are strings or whole numbers; its first document decides which. Send"
        " ids of that kind.",
    ),
    "no-backups": Kind(
        409, "The service has no folder for backups", "Start it with `--backups DIR`."
    ),
    "too-large": Kind(
        413,
        "The request is larger than the service accepts",
        "`detail` names the limit and the size. Send large batches as a stream"
        " (`application/x-ndjson`), which has no limit as a whole.",
    ),
    "media-type": Kind(
        415,
        "The body has a media type that the service does not read",
        "Send `Content-Type: application/json`, `application/x-ndjson` or"
        " `application/vnd.apache.arrow.stream`; with curl: `-H 'content-type: application/json'`."
        " Send the body without a `Content-Encoding`: compressed bodies are not read.",
    ),
    "invalid-document": Kind(
        422,
        "A document or a setting cannot be used",
        "`detail` says which and why. A document has an id and one of `text`, `features` and"
        " `fingerprint`, whichever the index accepts.",
    ),
    "queue-full": Kind(429, "Too many documents are waiting", _AGAIN),
    "failure": Kind(
        500,
        "The service met an unexpected error",
        "The log has the error under the request's id. You may send the request again.",
    ),
    "not-ready": Kind(503, "The service is starting or ending", _AGAIN),
    "too-late": Kind(503, "The document waited too long and was not stored", _AGAIN),
    "write-failed": Kind(
        503,
        "The disk refused a write",
        f"{_AGAIN} The log and `/readyz` have the error of the system.",
    ),
    "disk-full": Kind(
        507,
        "The disk is full",
        "Nothing was stored; queries go on. Free space on the disk of the index: the service tries"
        " again every second. Then send the request again under the same id.",
    ),
}


class Problem(Exception):  # noqa: N818  # RFC 9457 calls it so
    """A refusal of a request, or of one document of it.

    Args:
        name: A key of KINDS.
        detail: About this occurrence.
        retry_after: Seconds.
        headers: More headers of the answer.
        closes: Whether the connection cannot be used any more.
    """

    def __init__(
        self, name: str, detail: str, *, retry_after: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (), closes: bool = False,
    ) -> None:  # fmt: skip
        """Store the kind and the details."""
        super().__init__(detail)
        self.name, self.detail, self.retry_after = name, detail, retry_after
        self.headers, self.closes = headers, closes

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.name].status

    def to_dict(self) -> dict[str, Any]:
        """The problem details as a dict for JSON."""
        kind = KINDS[self.name]
        return {
            "type": f"/problems/{self.name}",
            "title": kind.title,
            "status": kind.status,
            "detail": self.detail,
        }


def page(name: str) -> str:
    """The page of a kind of problem, as Markdown."""
    kind = KINDS[name]
    return f"{kind.title} ({name}, {kind.status} {phrase_of(kind.status)})\n\n{kind.remedy}\n"


def phrase_of(status: int) -> str:
    """What RFC 9110 calls an HTTP status; Python has two of these phrases since 3.13 only.

    Example:
        >>> phrase_of(413), phrase_of(429)
        ('Content Too Large', 'Too Many Requests')
    """
    return _PHRASES.get(status) or HTTPStatus(status).phrase
