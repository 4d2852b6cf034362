"""A client of `neardup serve`, for threads (`Client`) and for asyncio (`AsyncClient`).

    seen, query, nearest, add, remove    about one document
    seen_many, query_many, first_many    about many: batches, answers in order
    compare, explain, index, ready       about texts and the service

Both send the same requests: what is sent and how an answer is read stands once, in `_Exchange`;
sending, and waiting before a retry, is all that differs. A retry is safe, since the id is the key
of what is stored.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

from neardup.errors import NeardupError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
    from types import ModuleType

    import httpx

__all__ = ["AsyncClient", "Client", "First", "FirstMatch", "Match", "Seen", "ServiceError"]

Id: TypeAlias = str | int
Document: TypeAlias = "str | int | Iterable[int]"
"""A document: a text, a fingerprint, or hashes of features."""
A = TypeVar("A")
BATCH: Final = 512
BATCH_BYTES: Final = 4 << 20
"""The most bytes of a batch; the service accepts bodies of 16 MiB."""
RETRIED: Final = (429, 503)
SHORTEST_SECONDS: Final = 0.05
_UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError)
"""The errors of reading JSON that is no answer of the service, or of what is not JSON."""


class ServiceError(NeardupError):
    """The service refused a request, or could not be reached.

    Args:
        message: Why, and what to do.
        status: Of the answer; 0 if there was none.
        problem: The name of the problem's page, such as "queue-full"; "" if there was no answer.

    Example:
        >>> error = ServiceError("the service is full", 429, "queue-full")
        >>> error.status, error.problem
        (429, 'queue-full')
    """

    exit_code = 3

    def __init__(self, message: str, status: int = 0, problem: str = "") -> None:
        """Store the problem details."""
        super().__init__(message)
        self.status, self.problem = status, problem


class Match(NamedTuple):
    """A stored document and how close it is: a similarity, or a distance.

    Example:
        >>> name, similarity = Match("page-1", 0.9)
        >>> name, similarity
        ('page-1', 0.9)
    """

    id: Id
    close: float


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of an offered document.

    Args:
        new: Whether no other document is near.
        state: "new", "seen", "stored", "replaced" or "empty".
        match: The closest other document, if one is near.

    Example:
        >>> answer = Seen(new=False, state="seen", match=Match("page-1", 0.9))
        >>> "store" if answer.new else answer.match.id
        'page-1'
    """

    new: bool
    state: Literal["new", "seen", "stored", "replaced", "empty"]
    match: Match | None = None


class FirstMatch(NamedTuple):
    """A stored document, how close it is, and its fingerprint if its features determine it.

    Example:
        >>> FirstMatch("page-1", 1.0, None).id
        'page-1'
    """

    id: Id
    close: float
    fingerprint: int | None


class First(NamedTuple):
    """The state of an id ("absent", "other" or "same"), and near documents, first stored first.

    Example:
        >>> First("absent", [FirstMatch("page-1", 1.0, None)]).matches[0].close
        1.0
    """

    stored: Literal["absent", "other", "same"]
    matches: list[FirstMatch]


class _Exchange(NamedTuple, Generic[A]):
    """A request, and the function that reads its answer."""

    method: str
    path: str
    body: bytes | None
    read: Callable[[Any], A]


class _Options(NamedTuple):
    """The options of both clients."""

    key: str | None
    recipe: str | None
    retries: int

    def headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json"}
        if self.key is not None:
            if not self.key.isascii():
                raise UsageError("the key has other characters than ASCII: no service has such one")
            headers["authorization"] = f"Bearer {self.key}"
        if self.recipe is not None:
            headers["neardup-recipe"] = self.recipe
        return headers

    def pause(self, attempt: int, answer: httpx.Response | None) -> float | None:
        """Seconds before the next attempt; None after the last one."""
        if attempt >= self.retries or (answer is not None and answer.status_code not in RETRIED):
            return None
        shortest: float = SHORTEST_SECONDS * 2**attempt
        after: str = "" if answer is None else answer.headers.get("retry-after", "")
        seconds = float(after) if after.isdigit() else 0.0
        return max(seconds, shortest * (1 + random.random()))


class Client:
    """A client for threads: any number of them may share one.

    Args:
        url: Of the service: "http://127.0.0.1:8080".
        key: If it needs one.
        recipe: Digest of the recipe that features and fingerprints were made with; an index with
            another one refuses them.
        retries: How often a request is sent again if the service cannot be reached, is full, or
            is starting.
        timeout: Seconds without an answer.
        transport: Of httpx, for tests.

    Raises:
        UsageError: If httpx is not installed, or the key is not ASCII.
        ServiceError: By each call, if the service refuses it, or something else answers.

    Example:
        >>> from neardup.client import Client
        >>> client = Client("http://127.0.0.1:8080")
        >>> client.seen("page-1", "a text of some words")  # doctest: +SKIP
        Seen(new=True, state='new', match=None)
    """

    def __init__(
        self, url: str, key: str | None = None, *, recipe: str | None = None, retries: int = 5,
        timeout: float = 60.0, transport: httpx.BaseTransport | None = None,
    ) -> None:  # fmt: skip
        """Store the options; the first request connects."""
        self._httpx = _httpx()
        self._options = _Options(key, recipe, retries)
        self._client = self._httpx.Client(
            base_url=url, timeout=timeout, headers=self._options.headers(), transport=transport
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def seen(self, identity: Id, document: Document) -> Seen:
        """Store a document unless another one is near."""
        return self._send(_seen(identity, document))

    def seen_many(
        self, documents: Iterable[tuple[Id, Document]], batch: int = BATCH
    ) -> Iterator[Seen]:
        """Outcomes as from `seen`, for each (id, document) in order; a batch is one request."""
        return self._many("seen", _stored(documents), _as_seen, batch)

    def query(
        self, document: Document, limit: int = 100, *, similarity: float | None = None,
        distance: int | None = None,
    ) -> list[Match]:  # fmt: skip
        """The stored documents that are near, the closest first."""
        return self._send(_query(document, limit, similarity, distance))

    def query_many(
        self, documents: Iterable[Document], batch: int = BATCH
    ) -> Iterator[list[Match]]:
        """Matches as from `query`, for each document in order."""
        return self._many("query", map(_content, documents), _as_matches, batch)

    def first_many(
        self, documents: Iterable[tuple[Id, Document]], limit: int = 1, *,
        similarity: float | None = None, distance: int | None = None, batch: int = BATCH,
    ) -> Iterator[First]:  # fmt: skip
        """The state of each (id, document), and the first `limit` stored documents near it."""
        rows = _first_rows(documents, limit, similarity, distance)
        return self._many("first", rows, _as_first, batch)

    def nearest(self, document: Document, n: int = 10) -> list[Match]:
        """The closest stored documents, however far."""
        return self._send(_post("nearest", _content(document) | {"n": n}, _as_matches))

    def add(self, identity: Id, document: Document) -> bool:
        """Store a document, whatever is near; returns whether it has tokens."""
        return self._send(_post("add", {"id": identity} | _content(document), _as_added))

    def add_many(
        self, documents: Iterable[tuple[Id, Document]], batch: int = BATCH
    ) -> Iterator[bool]:
        """Results as from `add`, for each (id, document) in order."""
        return self._many("add", _stored(documents), _as_added, batch)

    def remove(self, identity: Id) -> bool:
        """Remove a document; returns whether it was stored."""
        return self._send(_post("remove", {"id": identity}, _as_removed))

    def compare(self, a: str, b: str) -> dict[str, Any]:
        """The similarity of two texts, as `neardup.compare(...).to_dict()`."""
        return self._send(_post("compare", {"a": a, "b": b}, dict))

    def explain(self, text: str, other: str | None = None) -> dict[str, Any]:
        """The explanation of a text's features, as `neardup.explain(...).to_dict()`."""
        return self._send(_explain(text, other))

    def index(self) -> dict[str, Any]:
        """The documents that the index accepts, its size, and the service's limits."""
        return self._send(_INDEX)

    def ready(self) -> bool:
        """Whether the service takes requests."""
        try:
            return bool(self._client.get("/readyz").status_code == 200)
        except self._httpx.TransportError:
            return False

    def _many(
        self, path: str, rows: Iterable[Mapping[str, Any]], read: Callable[[Any], A], batch: int
    ) -> Iterator[A]:
        for body in _bodies(rows, batch):
            yield from self._send(_Exchange("POST", f"/v1/{path}", body, _each(read)))

    def _send(self, exchange: _Exchange[A]) -> A:
        attempt = 0
        while True:
            answer, failure = None, None
            try:
                answer = self._client.request(exchange.method, exchange.path, content=exchange.body)
            except self._httpx.TransportError as error:
                failure = error
            if answer is not None and answer.is_success:
                return _value(exchange, answer, self._client.base_url)
            pause = self._options.pause(attempt, answer)
            if pause is None:
                raise _error(answer, failure, self._client.base_url) from None
            time.sleep(pause)
            attempt += 1


class AsyncClient:
    """A client for asyncio: each call is awaited, and `*_many` are asynchronous iterators.

    Args:
        url: As in Client.
        key: As in Client.
        recipe: As in Client.
        retries: As in Client.
        timeout: As in Client.
        transport: As in Client.
    """

    def __init__(
        self, url: str, key: str | None = None, *, recipe: str | None = None, retries: int = 5,
        timeout: float = 60.0, transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        """Store the options; the first request connects."""
        self._httpx = _httpx()
        self._options = _Options(key, recipe, retries)
        self._client = self._httpx.AsyncClient(
            base_url=url, timeout=timeout, headers=self._options.headers(), transport=transport
        )

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def seen(self, identity: Id, document: Document) -> Seen:
        """As `Client.seen`."""
        return await self._send(_seen(identity, document))

    def seen_many(
        self, documents: Iterable[tuple[Id, Document]], batch: int = BATCH
    ) -> AsyncIterator[Seen]:
        """As `Client.seen_many`."""
        return self._many("seen", _stored(documents), _as_seen, batch)

    async def query(
        self, document: Document, limit: int = 100, *, similarity: float | None = None,
        distance: int | None = None,
    ) -> list[Match]:  # fmt: skip
        """As `Client.query`."""
        return await self._send(_query(document, limit, similarity, distance))

    def query_many(
        self, documents: Iterable[Document], batch: int = BATCH
    ) -> AsyncIterator[list[Match]]:
        """As `Client.query_many`."""
        return self._many("query", map(_content, documents), _as_matches, batch)

    def first_many(
        self, documents: Iterable[tuple[Id, Document]], limit: int = 1, *,
        similarity: float | None = None, distance: int | None = None, batch: int = BATCH,
    ) -> AsyncIterator[First]:  # fmt: skip
        """As `Client.first_many`."""
        rows = _first_rows(documents, limit, similarity, distance)
        return self._many("first", rows, _as_first, batch)

    async def nearest(self, document: Document, n: int = 10) -> list[Match]:
        """As `Client.nearest`."""
        exchange = _post("nearest", _content(document) | {"n": n}, _as_matches)
        return await self._send(exchange)

    async def add(self, identity: Id, document: Document) -> bool:
        """As `Client.add`."""
        row = {"id": identity} | _content(document)
        return await self._send(_post("add", row, _as_added))

    def add_many(
        self, documents: Iterable[tuple[Id, Document]], batch: int = BATCH
    ) -> AsyncIterator[bool]:
        """As `Client.add_many`."""
        return self._many("add", _stored(documents), _as_added, batch)

    async def remove(self, identity: Id) -> bool:
        """As `Client.remove`."""
        return await self._send(_post("remove", {"id": identity}, _as_removed))

    async def compare(self, a: str, b: str) -> dict[str, Any]:
        """As `Client.compare`."""
        return await self._send(_post("compare", {"a": a, "b": b}, dict))

    async def explain(self, text: str, other: str | None = None) -> dict[str, Any]:
        """As `Client.explain`."""
        return await self._send(_explain(text, other))

    async def index(self) -> dict[str, Any]:
        """As `Client.index`."""
        return await self._send(_INDEX)

    async def ready(self) -> bool:
        """As `Client.ready`."""
        try:
            return bool((await self._client.get("/readyz")).status_code == 200)
        except self._httpx.TransportError:
            return False

    async def _many(
        self, path: str, rows: Iterable[Mapping[str, Any]], read: Callable[[Any], A], batch: int
    ) -> AsyncIterator[A]:
        for body in _bodies(rows, batch):
            exchange = _Exchange("POST", f"/v1/{path}", body, _each(read))
            for each in await self._send(exchange):
                yield each

    async def _send(self, exchange: _Exchange[A]) -> A:
        attempt = 0
        while True:
            answer, failure = None, None
            try:
                answer = await self._client.request(
                    exchange.method, exchange.path, content=exchange.body
                )
            except self._httpx.TransportError as error:
                failure = error
            if answer is not None and answer.is_success:
                return _value(exchange, answer, self._client.base_url)
            pause = self._options.pause(attempt, answer)
            if pause is None:
                raise _error(answer, failure, self._client.base_url) from None
            await asyncio.sleep(pause)
            attempt += 1


def _httpx() -> ModuleType:
    try:
        import httpx
    except ModuleNotFoundError:
        raise UsageError("the client needs httpx: pip install 'neardup[client]'") from None
    return httpx


def _content(document: Document) -> dict[str, Any]:
    """A document as a field of a request."""
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, int):
        return {"fingerprint": document}
    return {"features": [int(each) for each in document]}


def _stored(documents: Iterable[tuple[Id, Document]]) -> Iterator[dict[str, Any]]:
    return ({"id": identity} | _content(document) for identity, document in documents)


def _bodies(rows: Iterable[Mapping[str, Any]], batch: int) -> Iterator[bytes]:
    """Request arrays of at most `batch` rows and BATCH_BYTES; a larger row has one of its own."""
    if batch < 1:
        raise UsageError(f"batch is {batch}: use 1 or more")
    some, nbytes = list[bytes](), 0
    for row in rows:
        line = json.dumps(row).encode()
        if some and (len(some) == batch or nbytes + len(line) > BATCH_BYTES):
            yield b"[%s]" % b",".join(some)
            some, nbytes = [], 0
        some.append(line)
        nbytes += len(line)
    if some:
        yield b"[%s]" % b",".join(some)


def _post(path: str, body: Any, read: Callable[[Any], A]) -> _Exchange[A]:
    return _Exchange("POST", f"/v1/{path}", json.dumps(body).encode(), read)


_INDEX: Final[_Exchange[dict[str, Any]]] = _Exchange("GET", "/v1/index", None, dict)


def _seen(identity: Id, document: Document) -> _Exchange[Seen]:
    return _post("seen", {"id": identity} | _content(document), _as_seen)


def _query(
    document: Document, limit: int, similarity: float | None, distance: int | None
) -> _Exchange[list[Match]]:
    reach = _reach(similarity, distance)
    return _post("query", _content(document) | {"limit": limit} | reach, _as_matches)


def _first_rows(
    documents: Iterable[tuple[Id, Document]], limit: int, similarity: float | None,
    distance: int | None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    more = {"limit": limit} | _reach(similarity, distance)
    return (row | more for row in _stored(documents))


def _reach(similarity: float | None, distance: int | None) -> dict[str, Any]:
    limits = {"similarity": similarity, "distance": distance}
    return {name: value for name, value in limits.items() if value is not None}


def _explain(text: str, other: str | None) -> _Exchange[dict[str, Any]]:
    return _post("explain", {"text": text} | ({} if other is None else {"other": other}), dict)


def _as_match(row: dict[str, Any]) -> Match:
    return Match(row["id"], row["similarity"] if "similarity" in row else row["distance"])


def _as_seen(row: dict[str, Any]) -> Seen:
    match = row.get("match")
    return Seen(row["new"], row["state"], None if match is None else _as_match(match))


def _as_matches(row: dict[str, Any]) -> list[Match]:
    return [_as_match(each) for each in row["matches"]]


def _as_first(row: dict[str, Any]) -> First:
    matches = [FirstMatch(*_as_match(each), each.get("fingerprint")) for each in row["matches"]]
    return First(row["stored"], matches)


def _as_added(row: dict[str, Any]) -> bool:
    return bool(row["state"] == "added")


def _as_removed(row: dict[str, Any]) -> bool:
    return bool(row["removed"])


def _each(read: Callable[[Any], A]) -> Callable[[list[Any]], list[A]]:
    """The answers in an array; a refused document raises ServiceError."""

    def all_of(rows: list[Any]) -> list[A]:
        for number, row in enumerate(rows):
            if "error" in row:
                raise _refused(row["error"], f"document {number + 1} of a batch: ")
        return [read(row) for row in rows]

    return all_of


def _refused(problem: dict[str, Any], where: str = "") -> ServiceError:
    name = str(problem.get("type", "")).rpartition("/")[2]
    message = f"{where}{problem.get('title', 'the service refused it')}: {problem.get('detail')}"
    return ServiceError(message, int(problem.get("status", 0)), name)


def _value(exchange: _Exchange[A], answer: httpx.Response, url: httpx.URL) -> A:
    """What an answer says; ServiceError if it is none of a service."""
    try:
        return exchange.read(answer.json())
    except _UNREADABLE:
        raise _foreign(answer, url) from None


def _error(
    answer: httpx.Response | None, failure: Exception | None, url: httpx.URL
) -> ServiceError:
    """The error to raise after the last attempt."""
    if answer is None:
        why = failure or "no answer"
        return ServiceError(f"the service at {url} cannot be reached: {why}; is it running?")
    try:
        return _refused(answer.json())
    except _UNREADABLE:
        return _foreign(answer, url)


def _foreign(answer: httpx.Response, url: httpx.URL) -> ServiceError:
    """The error for an answer of something else, such as a proxy."""
    what = f"{url} is not a service of neardup: the answer is {answer.status_code}"
    return ServiceError(what, answer.status_code)
