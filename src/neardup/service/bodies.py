"""Bodies: read with limits and deadlines, one document or many, and answered in the same form.

JSON     an object, or an array of objects; the answer is an object or an array
NDJSON   an object a line, read and answered as it comes
Arrow    an IPC stream with a column for each field, and one of answers
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from neardup.service.settings import Limits

    Receive = Callable[[], Awaitable[dict[str, Any]]]

__all__ = [
    "ARROW", "JSON", "NDJSON", "ClientGoneError", "Request", "arrow_rows", "arrow_table", "decoded",
    "media_type", "read_lines", "read_whole",
]  # fmt: skip


class Request(NamedTuple):
    """What handlers see of a request."""

    headers: dict[bytes, bytes]
    receive: Receive
    """The next piece of its body; TimeoutError if it does not come in time."""
    send: Callable[[dict[str, Any]], Awaitable[None]]
    common: list[tuple[bytes, bytes]]
    """Headers of its answer."""


JSON: Final = b"application/json"
NDJSON: Final = b"application/x-ndjson"
ARROW: Final = b"application/vnd.apache.arrow.stream"
_ALIASES: Final = {b"application/ndjson": NDJSON, b"application/jsonl": NDJSON}


def media_type(headers: dict[bytes, bytes]) -> bytes:
    """The media type of a body that the service reads.

    Raises:
        Problem: For another one.
    """
    given = headers.get(b"content-type", b"")
    if given == JSON:
        return JSON
    bare = given.partition(b";")[0].strip().lower()
    bare = _ALIASES.get(bare, bare)
    if bare not in {JSON, NDJSON, ARROW}:
        name = given[:100].decode("latin-1")
        raise Problem(
            "media-type", f"Content-Type is {name!r}: send 'application/json'", closes=True
        )
    return bare


class ClientGoneError(Exception):
    """Nobody reads an answer any more."""


async def read_whole(receive: Receive, headers: dict[bytes, bytes], limits: Limits) -> bytes:
    """A body that is not streamed.

    Raises:
        Problem: If it is too large or too slow.
        ClientGoneError: If the client went away.
    """
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.body_bytes:
        raise _too_large(int(length), limits)
    parts, size = [], 0
    async for part in _parts(receive, limits):
        parts.append(part)
        size += len(part)
        if size > limits.body_bytes:
            raise _too_large(size, limits)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_lines(receive: Receive, limits: Limits) -> AsyncIterator[list[bytes]]:
    """The lines of a body as they come, some at a time: as many as one piece of it ends.

    Raises:
        Problem: As `read_whole`, for one line.
    """
    rest: list[bytes] = []
    size = 0
    async for part in _parts(receive, limits):
        lines = part.split(b"\n")
        rest.append(lines[0])
        size += len(lines[0])
        if size > limits.body_bytes:
            raise _too_large(size, limits)
        if len(lines) > 1:
            yield [b"".join(rest), *lines[1:-1]]
            rest, size = [lines[-1]], len(lines[-1])
    yield [b"".join(rest)]


async def _parts(receive: Receive, limits: Limits) -> AsyncIterator[bytes]:
    while True:
        try:
            message = await receive()
        except TimeoutError:
            raise Problem(
                "body-too-slow",
                f"nothing came for {limits.body_seconds:g} seconds",
                closes=True,
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


def _too_large(size: int, limits: Limits) -> Problem:
    return Problem(
        "too-large",
        f"the body has {size:,} bytes or more, and the limit is {limits.body_bytes:,}",
        closes=True,
    )


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """What JSON says.

    Raises:
        Problem: If it is not JSON, or something else than the decoder reads.
    """
    try:
        try:
            return decoder.decode(body)
        except msgspec.ValidationError:  # 5.0 is a whole number too, for JSON Schema
            return msgspec.convert(_with_whole_numbers(msgspec.json.decode(body)), decoder.type)
    except msgspec.ValidationError as error:
        raise Problem("invalid-document", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("malformed-body", str(error)) from None


def _with_whole_numbers(value: Any) -> Any:
    """What JSON says, with whole numbers wherever a number is whole."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(each) for each in value]
    if isinstance(value, dict):
        return {name: _with_whole_numbers(each) for name, each in value.items()}
    return value


def arrow_rows(body: bytes, kind: Any) -> list[Any]:
    """The rows of an Arrow IPC stream, as structures.

    Raises:
        Problem: If it is not such a stream, or a row is not what `kind` has.
    """
    import pyarrow as pa

    try:
        rows = pa.ipc.open_stream(body).read_all().to_pylist()
    except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
        raise Problem("malformed-body", str(error)) from None
    try:
        return msgspec.convert(rows, list[kind])
    except msgspec.ValidationError as error:
        raise Problem("invalid-document", str(error)) from None


def arrow_table(answers: list[Any]) -> bytes:
    """Answers, or problems, as an Arrow IPC stream with a row each and a column for each field."""
    import pyarrow as pa

    rows = [
        {"error": each.to_dict()} if isinstance(each, Problem) else msgspec.to_builtins(each)
        for each in answers
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
